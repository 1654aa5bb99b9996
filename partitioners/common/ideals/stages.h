// What a stage between two ideals costs on any consecutive devices of a pipeline, exactly as plan::plan_times and
// plan::AnalyticBytes count it (METHODS 6, `exact`).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "partitioners/common/ideals/lattice.h"
#include "partitioners/common/ideals/links.h"
#include "partitioners/common/row_footprint.h"
#include "plan/problem.h"

namespace millrace::partitioners::ideals {

/// Equal pipelines on consecutive devices, replicas of a stage on consecutive devices with rows by speed. Pipelines
/// that differ (in devices, links or rows) are told apart as `kinds`; devices are numbered within a pipeline.
class Stages {
 public:
  /// All must outlive it.
  Stages(const plan::Problem& problem, int pipelines, const Lattice& lattice);

  int devices() const { return devices_; }
  std::size_t kinds() const { return kinds_.size(); }
  Links& links(std::size_t kind) { return kinds_[kind].links; }

  /// Work of an ideal's operators on a micro-batch: seconds on a device of speed 1. A stage on some devices takes at
  /// least its work over the sum of their speeds.
  double work(std::size_t kind, int ideal) const { return kinds_[kind].work[static_cast<std::size_t>(ideal)]; }
  /// The same of everything behind an ideal: the other operators, and the tensors that they receive from it.
  double work_behind(std::size_t kind, int ideal) const {
    const Kind& of = kinds_[kind];
    return of.work.back() - work(kind, ideal) + of.messages[static_cast<std::size_t>(ideal)];
  }
  /// Sum of the speeds of devices first, first + 1, … of the pipeline.
  double speed_from(std::size_t kind, int first) const {
    return kinds_[kind].speed_from[static_cast<std::size_t>(first)];
  }

  /// Compute time on the slowest replica, of one micro-batch.
  struct Compute {
    double forward = 0;
    double backward = 0;
  };
  Compute compute(std::size_t kind, int first, int replicas, int inner, int outer);
  /// Rows of the fullest replica.
  std::int64_t most_rows(std::size_t kind, int first, int replicas) { return team(kind, first, replicas).most_rows; }

  /// Whether anything is ever reduced.
  bool reduces() const { return reduces_; }
  /// Bytes of parameters and buffers that only operators between the ideals use. A tensor that is tied to operators of
  /// another stage is left out: what is reduced takes no less time than these.
  std::int64_t own_bytes(int inner, int outer) const;
  /// Seconds to sum so many bytes over the replicas of all pipelines.
  double reduction(int first, int replicas, std::int64_t bytes);
  /// Seconds that no reduction of a stage behind an ideal, on devices from `first` on, exceeds.
  double largest_reduction(int ideal, int first);

  bool limited() const { return limited_; }
  /// Whether the stage fits on each of its devices in each pipeline, `margin` bytes left free.
  bool fits(int first, int replicas, int inner, int outer, std::int64_t live, std::int64_t margin);

 private:
  struct Profile {   // sums over the operators of each ideal
    int device = 0;  // of the cluster: stands for its kind
    std::int64_t rows = 0;
    std::vector<double> forward, total;
  };
  struct Room {
    std::int64_t rows = 0;
    std::int64_t bytes = 0;
    bool operator==(const Room&) const = default;
  };
  struct Team {                         // replicas of a stage
    std::vector<std::size_t> profiles;  // in order of replicas, each once
    std::int64_t most_rows = 0;
    std::vector<Room> rooms;  // of devices with a limit
  };
  struct Kind {
    int first = 0;  // device of the cluster at which the pipeline starts
    std::int64_t rows = 0;
    std::vector<double> work, messages, speed_from;
    Links links;
    std::vector<std::unique_ptr<Team>> teams;
  };
  void find_kinds(int pipelines);
  void measure_work(Kind& kind) const;
  void measure_messages(Kind& kind) const;
  void find_parameters(int pipelines);
  const Team& team(std::size_t kind, int first, int replicas);
  std::size_t profile(int device, std::int64_t rows);
  const RowFootprint& footprint(int inner, int outer);
  template <class Gain>
  std::vector<double> sums(const Gain& gain) const;  // by ideal: of what each operator adds

  struct Tied {
    std::vector<OpId> users;
    std::int64_t bytes = 0;
  };

  const plan::Problem& problem_;
  const Lattice& lattice_;
  int pipelines_;
  int devices_;
  std::vector<int> same_device_;  // of each device of the cluster: the first that equals it
  std::vector<double> speeds_;
  std::vector<Kind> kinds_;
  std::vector<Profile> profiles_;
  std::vector<double> parameter_bytes_;  // by ideal, of tensors with one user
  std::vector<Tied> tied_;
  std::int64_t all_bytes_ = 0;              // of all parameters and buffers
  std::vector<double> largest_reductions_;  // by first device: of all bytes; negative: not known
  std::vector<std::unordered_map<std::int64_t, double>> reductions_;  // [first · devices + replicas − 1]: by bytes
  std::unordered_map<std::uint64_t, RowFootprint> footprints_;        // by inner and outer
  plan::AnalyticBytes bytes_;
  bool reduces_ = false;
  bool limited_ = false;
};

}  // namespace millrace::partitioners::ideals
