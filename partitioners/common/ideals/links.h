// Messages within one pipeline: which links its devices share, and how long each tensor takes on each of them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "plan/problem.h"

namespace millrace::partitioners::ideals {

/// Devices first … first + replicas − 1 of a pipeline, which hold one stage.
struct Group {
  std::int32_t first = 0;
  std::int32_t replicas = 0;
  bool operator==(const Group&) const = default;
  auto operator<=>(const Group&) const = default;
};

/// Links that compare equal carry messages alike.
class Links {
 public:
  Links() = default;
  /// `problem` must outlive it; the pipeline has `devices` devices from `first` of the cluster on.
  Links(const plan::Problem& problem, int first, int devices);

  /// Whether all pairs of devices share the same kind of link: where a tensor comes from makes no difference then.
  bool uniform() const { return kinds_.size() <= 1; }

  /// Seconds for `rows` rows of a tensor between two groups: the slowest pair decides.
  double message(TensorId tensor, std::int64_t rows, Group from, Group to);
  /// Where links are uniform: seconds by tensor; only those that an operator computes count.
  /// \pre the pipeline has two devices at least.
  const std::vector<double>& messages(std::int64_t rows) { return table(0, rows); }

  /// By tensor: seconds on the fastest link. \pre two devices at least.
  std::vector<double> fastest(std::int64_t rows);

  /// A group that any device from `boundary` on receives from as fast as from `from`; equal answers are equally good.
  Group equivalent(Group from, int boundary);

  /// Whether two pipelines have the same pattern of links.
  bool same_pattern(const Links& other) const;

 private:
  struct Kind {
    cluster::Link link;
    int a = 0, b = 0;  // a pair of devices of the cluster that shares it
  };
  using KindSet = std::vector<std::uint16_t>;  // ascending

  const KindSet& between(Group from, Group to);
  std::uint16_t kind_of(int a, int b) const {
    return of_pair_[static_cast<std::size_t>(a) * static_cast<std::size_t>(devices_) + static_cast<std::size_t>(b)];
  }
  const std::vector<double>& table(std::size_t kind, std::int64_t rows);

  const plan::Problem* problem_ = nullptr;
  int devices_ = 0;
  std::vector<Kind> kinds_;
  std::vector<std::uint16_t> of_pair_;  // kind of each pair of devices
  std::map<std::pair<Group, Group>, KindSet> between_;
  std::map<std::pair<Group, int>, Group> equivalent_;
  std::map<std::pair<std::size_t, std::int64_t>, std::vector<double>> tables_;  // by kind and rows: of each tensor
};

}  // namespace millrace::partitioners::ideals
