// The stages of one shape as local search prices them: rows and devices of each, messages between them, memory, and
// the fitness of a division (METHODS 6: iteration time of the pipeline mode + λ·bytes·β).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "partitioners/common/fm/netlist.h"
#include "plan/closed_form.h"
#include "plan/problem.h"
#include "plan/shapes.h"

namespace millrace::partitioners::fm {

/// Times are whole numbers of ticks, so that sums are exact in any order: the same division has the same figures
/// however it was reached.
using Ticks = std::int64_t;

/// Times of the nodes for each profile, a kind of device with a number of rows.
struct Times {
  std::size_t nodes = 0;
  std::vector<Ticks> forward, backward;  ///< [profile · nodes + node]
};

/// Times of groups of nodes.
Times contract(const Times& fine, std::span<const Node> group_of, std::size_t groups);

/// What a stage's figures come to.
struct StageSums {
  std::int64_t weights = 0;    ///< bytes: parameters and buffers
  std::int64_t elements = 0;   ///< of parameters
  std::int64_t kept = 0;       ///< bytes a row and live micro-batch
  std::int64_t kept_once = 0;  ///< bytes a live micro-batch
  std::int64_t border = 0;     ///< bytes a row: activations received and sent
};

/// All pipelines are cut alike: where their devices differ, the slowest counts. Replicas share rows by speed.
class Machine {
 public:
  /// `problem` must outlive it. \param lambda  weight of the time that all injected bytes would take on one link
  /// \param recomputed  every forward is run again before its backward
  Machine(const plan::Problem& problem, const Netlist& netlist, const plan::Shape& shape, double lambda,
          bool recomputed = false);

  int stages() const { return static_cast<int>(stages_.size()); }
  const plan::Shape& shape() const { return shape_; }
  std::span<const int> replicas() const { return replicas_; }
  const Times& times() const { return times_; }
  double tick() const { return tick_; }  ///< seconds

  /// Kinds of device and rows in a stage, as numbers in Times.
  std::span<const std::size_t> profiles(int stage) const { return at(stage).profiles; }
  /// Relative speed of a stage as a whole, for first cuts.
  double capacity(int stage) const { return at(stage).capacity; }

  /// Of one tensor with `bytes` a row, received by a stage.
  Ticks message(int from, int to, std::int64_t bytes) const {
    const Link& link = links_[static_cast<std::size_t>(from) * stages_.size() + static_cast<std::size_t>(to)];
    return static_cast<Ticks>(link.latency + link.per_byte * static_cast<double>(bytes) + 0.5);
  }
  /// Rows of a micro-batch over all replicas: what a received byte a row comes to.
  std::int64_t all_rows(int stage) const { return at(stage).all_rows; }

  bool reduces() const { return reduces_; }
  /// Ticks to sum the gradients of `bytes` of weights over the replicas of a stage in all pipelines.
  double reduction(int stage, std::int64_t bytes) const;

  bool counts_memory() const { return counts_memory_; }
  /// Bytes on the fullest device of a stage, workspace apart.
  double memory(int stage, const StageSums& sums) const;
  /// Part of its limit by which the fullest device is over it, the stage's margin included; 0: fits.
  double excess(int stage, const StageSums& sums) const;
  /// Bytes that the devices of a stage keep free: for what is not counted here.
  void set_margin(int stage, double bytes) { stages_[static_cast<std::size_t>(stage)].margin = bytes; }

  /// What is minimised; smaller is better.
  struct Value {
    double fitness = 0;  ///< seconds, unless the objective is in bytes; far above where memory is exceeded
    double guide = 0;    ///< fitness with a weight on the spread of times: leads over plateaus
    bool operator==(const Value&) const = default;
    auto operator<=>(const Value&) const = default;
  };
  /// \param seconds  of each stage, in ticks  \param received  bytes of a micro-batch, on all devices of a pipeline
  /// \param peak, excess  of all stages, where memory counts
  Value value(std::span<const plan::StageSeconds> seconds, std::int64_t received, std::span<const StageSums> sums,
              double peak, double excess) const;

 private:
  struct Room {
    double rows = 0;
    std::optional<double> bytes{};
  };
  struct StageDevices {
    std::vector<std::size_t> profiles;
    std::vector<Room> rooms;
    double capacity = 0;
    std::int64_t most_rows = 0;
    std::int64_t all_rows = 0;
    std::int64_t live = 1;
    double margin = 0;              // bytes
    std::int64_t owners = 1;        // replicas in all pipelines
    std::vector<double> reduction;  // ticks for kReductionUnit · 2^i bytes
  };
  struct Link {
    double latency = 0;   // ticks
    double per_byte = 0;  // ticks, for all rows of the fullest replica
  };
  struct Profile {
    int device = 0;
    std::int64_t rows = 0;
    bool operator==(const Profile&) const = default;
  };

  const StageDevices& at(int stage) const { return stages_[static_cast<std::size_t>(stage)]; }
  int first_device(int pipeline, int stage) const;
  void deal_devices();
  std::size_t profile(int device, std::int64_t rows);
  void make_links();
  void make_times(const Netlist& netlist, bool recomputed);
  void sample_reductions(const Netlist& netlist);
  double injected(std::int64_t received, std::span<const StageSums> sums) const;
  double exposed_reduction(std::span<const plan::StageSeconds> seconds, std::span<const StageSums> sums) const;
  double needed(const Room& room, const StageDevices& stage, const StageSums& sums) const;

  const plan::Problem& problem_;
  plan::Shape shape_;
  const plan::ScheduleTraits* traits_;
  std::vector<int> replicas_;
  std::vector<StageDevices> stages_;
  std::vector<Profile> profiles_;
  std::vector<Link> links_;
  Times times_;
  double tick_ = 1;
  double per_injected_byte_ = 0;  // seconds of fitness
  bool reduces_ = false;
  bool counts_memory_ = false;
  double whole_ = 1;  // seconds that everything together takes, communication included
};

}  // namespace millrace::partitioners::fm
