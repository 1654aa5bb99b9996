// Where the devices of DAPPLE's stages can be: counts on servers, and how they are dealt to pipelines.
#pragma once

#include <vector>

namespace millrace::partitioners {

/// Devices of one stage in all pipelines together, by server. Pipeline p has the p-th run of equal length, servers in
/// ascending order.
struct StagePlacement {
  int replicas = 0;            ///< of one pipeline
  std::vector<int> counts;     ///< by server
  std::vector<int> server_of;  ///< by pipeline: the server, or plan::kSpansServers
  bool spans = false;          ///< more than one server in all
};

/// The servers that a search deals devices from.
class Servers {
 public:
  explicit Servers(std::vector<int> capacities);
  /// As if each border had the best bandwidth that any way of dealing the two stages' devices to pipelines gives it,
  /// whatever the other borders need: no real plan is better placed. Servers that are too many to enumerate count as
  /// one, in which only sizes matter.
  static Servers at_best(const std::vector<int>& capacities);

  const std::vector<int>& capacities() const { return capacities_; }
  int largest() const { return largest_; }  ///< devices of the largest real server
  /// Whether placements() leaves out only mirrored ones.
  bool complete() const { return capacities_.size() <= kMostEnumerated; }

  /// Ways to take `replicas` devices for each of `pipelines` from what is left.
  std::vector<StagePlacement> placements(const std::vector<int>& left, int replicas, int pipelines) const;

  /// Bandwidth from a stage to the next, in the pipeline where it is slowest.
  double bandwidth(const StagePlacement& from, const StagePlacement& to) const;

 private:
  static constexpr std::size_t kMostEnumerated = 2;
  StagePlacement placed(std::vector<int> counts, int replicas, int pipelines) const;
  void enumerate(const std::vector<int>& left, int missing, std::vector<int>& counts,
                 std::vector<std::vector<int>>& all) const;

  std::vector<int> capacities_;
  int largest_ = 0;  // of the real servers
  bool at_best_ = false;
};

}  // namespace millrace::partitioners
