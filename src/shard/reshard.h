// Conversions between placements of one tensor: which collectives, how many bytes they move and how long they take.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cluster/cluster.h"
#include "shard/intervals.h"

namespace millrace::shard {

enum class StepKind : std::uint8_t {
  all_reduce,      ///< P → B
  reduce_scatter,  ///< P → S
  all_gather,      ///< S → B
  all_to_all,      ///< S(i) → S(j), other ratios, or parts that lie elsewhere on a mesh of several axes
  slice,           ///< B → S: local
  as_term          ///< B or S → P: local; the first device keeps the whole, or each its part, and the rest is zero
};
std::string_view name(StepKind kind);

/// One step, among the devices that differ in the axes of `axes` (a mask).
struct Step {
  StepKind kind = StepKind::slice;
  unsigned axes = 0;
  bool largest = false;  ///< reductions of P(max)
  Placement from{};
  Placement to{};

  bool local() const { return kind == StepKind::slice || kind == StepKind::as_term; }
};

/// Steps from one placement to another, one axis at a time where the intervals allow it; none for equal placements.
/// \pre both fit the tensor.
std::vector<Step> conversion(const TensorView& tensor, const Placement& from, const Placement& to, const Mesh& mesh);

struct StepCost {
  Bytes moved{};   ///< over all devices
  Seconds time{};  ///< of the slowest device
  StepCost& operator+=(const StepCost& other) {
    moved += other.moved;
    time += other.time;
    return *this;
  }
};

/// The links of a mesh on a cluster.
class MeshLinks {
 public:
  /// Device k of the mesh is device k of the cluster. \throws InvalidInput  a cluster with fewer devices.
  MeshLinks(const Mesh& mesh, const cluster::Cluster& cluster);
  /// The slowest among devices that differ in the axes of `mask` only.
  cluster::Link link(unsigned mask) const { return links_[mask]; }

 private:
  std::array<cluster::Link, 1U << kMaximumAxes> links_{};
};

/// METHODS 7: ring times, with the bytes that intervals really move. Local steps take no time, but for as_term, which
/// counts one latency: a sum that is put off is paid later.
StepCost step_cost(const TensorView& tensor, const Step& step, const Mesh& mesh, const MeshLinks& links);

/// The same along one axis of `devices` equal parts by the closed forms of METHODS 7, for tensors of `bytes`: what
/// choices are made by.
Seconds axis_time(Property from, Property to, double bytes, int devices, cluster::Link link);

}  // namespace millrace::shard
