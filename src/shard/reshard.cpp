// Plans conversions axis by axis, and counts what they move.
#include "shard/reshard.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "shard/index.h"

namespace millrace::shard {
namespace {

/// Whether an axis behind `axis` cuts `dim` too: then the parts of `axis` are no intervals of their own.
bool cut_behind(const Placement& placement, int axis, int dim, const Mesh& mesh) {
  for (int other = axis + 1; other < mesh.axis_count(); ++other) {
    if (placement[index(other)].is_split() && placement[index(other)].dim == dim) return true;
  }
  return false;
}

class Planner {
 public:
  Planner(const TensorView& tensor, const Placement& from, const Placement& to, const Mesh& mesh)
      : tensor_(tensor), now_(from), to_(to), mesh_(mesh) {}

  std::vector<Step> plan() {
    for (int axis = 0; axis < mesh_.axis_count(); ++axis) reduce(axis);
    while (open_axis() >= 0) {
      if (try_each(&Planner::slice) || try_each(&Planner::swap) || try_each(&Planner::gather)) continue;
      exchange();
    }
    for (int axis = mesh_.axis_count() - 1; axis >= 0; --axis) {  // from the finest cut of a dimension on
      if (now_[index(axis)] != to_[index(axis)]) step(StepKind::as_term, axis, to_[index(axis)]);
    }
    return std::move(steps_);
  }

 private:
  void step(StepKind kind, int axis, Property property) {
    Step one{.kind = kind, .axes = 1U << axis, .from = now_};
    one.largest = now_[index(axis)].kind == Property::Kind::partial_max;
    now_[index(axis)] = property;
    one.to = now_;
    steps_.push_back(one);
  }

  bool fits_with(int axis, Property property) const {
    Placement next = now_;
    next[index(axis)] = property;
    return fits(tensor_, next, mesh_);
  }

  void reduce(int axis) {
    const Property now = now_[index(axis)], wanted = to_[index(axis)];
    if (!now.is_partial() || now == wanted) return;
    const bool scatters = wanted.is_split() && !cut_behind(now_, axis, wanted.dim, mesh_) && fits_with(axis, wanted);
    step(scatters ? StepKind::reduce_scatter : StepKind::all_reduce, axis, scatters ? wanted : kReplicated);
  }

  // A part that becomes a term must be an interval of the tensor as the axes behind cut it; else it is gathered first.
  bool open(int axis) const {
    const Property now = now_[index(axis)];
    if (to_[index(axis)].is_partial()) return now.is_split() && cut_behind(to_, axis, now.dim, mesh_);
    return now != to_[index(axis)];
  }
  Property wanted(int axis) const { return to_[index(axis)].is_partial() ? kReplicated : to_[index(axis)]; }
  int open_axis() const {
    for (int axis = 0; axis < mesh_.axis_count(); ++axis) {
      if (open(axis)) return axis;
    }
    return -1;
  }

  bool try_each(bool (Planner::*rule)(int)) {
    for (int axis = mesh_.axis_count() - 1; axis >= 0; --axis) {
      if (open(axis) && (this->*rule)(axis)) return true;
    }
    return false;
  }

  bool slice(int axis) {
    const Property part = wanted(axis);
    if (now_[index(axis)].is_split() || !part.is_split()) return false;
    if (cut_behind(now_, axis, part.dim, mesh_) || !fits_with(axis, part)) return false;
    step(StepKind::slice, axis, part);
    return true;
  }

  bool swap(int axis) {
    const Property now = now_[index(axis)], part = wanted(axis);
    if (!now.is_split() || !part.is_split()) return false;
    if (cut_behind(now_, axis, now.dim, mesh_) || cut_behind(now_, axis, part.dim, mesh_)) return false;
    if (!fits_with(axis, part)) return false;
    step(StepKind::all_to_all, axis, part);
    return true;
  }

  bool gather(int axis) {
    const Property now = now_[index(axis)];
    if (!now.is_split() || wanted(axis).is_split() || cut_behind(now_, axis, now.dim, mesh_)) return false;
    step(StepKind::all_gather, axis, kReplicated);
    return true;
  }

  // What no axis can do alone: every device fetches what it lacks, from wherever it is.
  void exchange() {
    Step one{.kind = StepKind::all_to_all, .from = now_};
    std::uint32_t dims = 0;
    const auto note = [&dims](Property property) {
      if (property.is_split()) dims |= 1U << property.dim;
    };
    for (int axis = 0; axis < mesh_.axis_count(); ++axis) {
      if (!open(axis)) continue;
      note(now_[index(axis)]);
      note(wanted(axis));
      one.axes |= 1U << axis;
      now_[index(axis)] = wanted(axis);
    }
    one.to = now_;
    for (int axis = 0; axis < mesh_.axis_count(); ++axis) {
      const Property property = now_[index(axis)];
      if (property.is_split() && (dims >> property.dim & 1U) != 0) one.axes |= 1U << axis;
    }
    steps_.push_back(one);
  }

  const TensorView& tensor_;
  Placement now_;
  const Placement& to_;
  const Mesh& mesh_;
  std::vector<Step> steps_;
};

/// Bytes that each device fetches from others, most and in all, and the most peers.
struct Fetched {
  std::int64_t most = 0;
  std::int64_t all = 0;
  int peers = 0;
};

Fetched fetched(const TensorView& tensor, const Step& step, const Mesh& mesh) {
  std::vector<Box> held;
  for (int device = 0; device < mesh.size(); ++device) held.push_back(box_of(tensor, step.from, mesh, device));
  Fetched sum;
  for (int device = 0; device < mesh.size(); ++device) {
    const Box wanted = box_of(tensor, step.to, mesh, device);
    const std::int64_t own = volume(intersection(wanted, held[static_cast<std::size_t>(device)]));
    const std::int64_t bytes = (volume(wanted) - own) * tensor.element_bytes;
    sum.all += bytes;
    sum.most = std::max(sum.most, bytes);
    if (bytes == 0) continue;
    int peers = 0;
    for (const int other : mesh.group(device, step.axes)) {
      const auto& theirs = held[static_cast<std::size_t>(other)];
      if (other != device && volume(intersection(wanted, theirs)) > 0) ++peers;
    }
    sum.peers = std::max(sum.peers, peers);
  }
  return sum;
}

int group_size(unsigned mask, const Mesh& mesh) {
  int size = 1;
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    if ((mask >> axis & 1U) != 0) size *= mesh.axis_size(axis);
  }
  return size;
}

Seconds ring(double steps, double bytes, cluster::Link link) {
  return steps * link.latency + Seconds(bytes / link.bandwidth.value());
}

}  // namespace

std::string_view name(StepKind kind) {
  static constexpr std::array<std::string_view, 6> kNames{"all_reduce", "reduce_scatter", "all_gather",
                                                          "all_to_all", "slice",          "as_term"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Step> conversion(const TensorView& tensor, const Placement& from, const Placement& to, const Mesh& mesh) {
  if (from == to) return {};
  return Planner(tensor, from, to, mesh).plan();
}

MeshLinks::MeshLinks(const Mesh& mesh, const cluster::Cluster& cluster) {
  if (mesh.size() > cluster.size()) {
    throw InvalidInput(
        fmt::format("the mesh has {} devices, cluster '{}' has {}", mesh.size(), cluster.name(), cluster.size()));
  }
  for (unsigned mask = 0; mask < 1U << mesh.axis_count(); ++mask) {
    cluster::Link slowest{cluster::kUnlimited, Seconds{}};
    for (int device = 0; device < mesh.size(); ++device) {
      for (const int other : mesh.group(device, mask)) {
        const cluster::Link link = cluster.link(device, other);
        slowest.bandwidth = std::min(slowest.bandwidth, link.bandwidth);
        slowest.latency = std::max(slowest.latency, link.latency);
      }
    }
    links_[mask] = slowest;
  }
}

StepCost step_cost(const TensorView& tensor, const Step& step, const Mesh& mesh, const MeshLinks& links) {
  const cluster::Link link = links.link(step.axes);
  const int devices = group_size(step.axes, mesh);
  const double others = devices - 1;
  std::int64_t all = 0, most = 0;  // of the parts after the step
  const auto measure = [&](const Placement& placement) {
    for (int device = 0; device < mesh.size(); ++device) {
      const std::int64_t bytes = volume(box_of(tensor, placement, mesh, device)) * tensor.element_bytes;
      all += bytes;
      most = std::max(most, bytes);
    }
  };
  switch (step.kind) {
    case StepKind::slice:
      return {};
    case StepKind::as_term:
      return {Bytes{}, link.latency};
    case StepKind::all_reduce:
      measure(step.to);
      return {Bytes(2 * (devices - 1) * (all / devices)),
              ring(2 * others, 2 * others / devices * static_cast<double>(most), link)};
    case StepKind::reduce_scatter:
      measure(step.to);
      return {Bytes((devices - 1) * all), ring(others, others * static_cast<double>(most), link)};
    case StepKind::all_gather:
    case StepKind::all_to_all:
      break;
  }
  const Fetched bytes = fetched(tensor, step, mesh);
  return {Bytes(bytes.all), ring(bytes.peers, static_cast<double>(bytes.most), link)};
}

Seconds axis_time(Property from, Property to, double bytes, int devices, cluster::Link link) {
  if (from == to || devices < 2) return Seconds{};
  const double others = devices - 1;
  if (to.is_partial()) return link.latency;
  if (from.is_partial()) {
    const double passes = to.is_split() ? 1 : 2;
    return ring(passes * others, passes * others / devices * bytes, link);
  }
  if (!from.is_split()) return Seconds{};
  return ring(others, others / devices * bytes / (to.is_split() ? devices : 1), link);
}

}  // namespace millrace::shard
