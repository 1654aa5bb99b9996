// A label is dropped when another one of the same place is no worse whatever follows, or when its bound reaches the
// limit.
#include "partitioners/common/dapple/labels.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace millrace::partitioners {
namespace {

std::size_t hash_of(const DappleLabel& label) {
  std::size_t hash = 0;
  const auto mix = [&](int value) {
    hash = (hash ^ static_cast<std::size_t>(value + 2)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 31;
  };
  mix(label.devices);
  for (const int left : label.left) mix(left);
  for (const int server : label.placement.server_of) mix(server);
  mix(label.placement.spans ? 1 : 0);
  return hash;
}

// What follows one can follow the other, at the same cost. Places of one hash may differ.
bool same_place(const DappleLabel& a, const DappleLabel& b) {
  return a.devices == b.devices && a.left == b.left && a.placement.server_of == b.placement.server_of &&
         a.placement.spans == b.placement.spans;
}

}  // namespace

DappleLabels::DappleLabels(const DappleQuestion& question, const Servers& servers,
                           std::chrono::steady_clock::time_point deadline)
    : question_(question), servers_(servers), deadline_(deadline) {
  const std::vector<int>& capacities = servers.capacities();
  devices_ = std::accumulate(capacities.begin(), capacities.end(), 0) / question.pipelines;
}

double DappleLabels::fill() const {
  return question_.figures->seconds.back() * question_.scale /
         static_cast<double>(question_.pipelines * question_.micro_batches);
}

double DappleLabels::block_of(std::size_t from, std::size_t to, int replicas) const {
  const double seconds = question_.figures->seconds[to] - question_.figures->seconds[from];
  return seconds * question_.scale / (replicas * question_.pipelines) / static_cast<double>(question_.micro_batches);
}

double DappleLabels::crossing(std::size_t prefix) const {
  return question_.figures->crossing_bytes[prefix] * question_.scale /
         static_cast<double>(question_.pipelines * question_.micro_batches);
}

// Exposed reductions shrink with the block, by at most stage × block: as long as there are no more stages than
// micro-batches the latency grows with the block all the same.
double DappleLabels::least_latency(const DappleLabel& label) const {
  double block = label.block;
  if (label.devices < devices_) {
    block = std::max(block, block_of(label.prefix, question_.prefixes->size() - 1, devices_ - label.devices));
  }
  // Whatever comes behind a border is at best in the same server.
  const double transfers = label.transfers + crossing(label.prefix) / plan::kDappleWithinServer;
  if (label.stages <= question_.micro_batches) {
    return plan::dapple_latency(block, question_.micro_batches, fill(), transfers, label.reductions);
  }
  return plan::dapple_latency(block, question_.micro_batches, fill(), transfers, {});
}

bool DappleLabels::dominates(const DappleLabel& a, const DappleLabel& b) const {
  if (!same_place(a, b)) return false;
  if (a.block > b.block || a.transfers > b.transfers || a.stages < b.stages) return false;
  if (question_.stages && a.stages != b.stages) return false;
  if (devices_ > question_.micro_batches && (a.block != b.block || a.stages != b.stages)) return false;
  // Each exposed reduction of a is below one of b at b's block, and falls at least as fast.
  return std::all_of(a.reductions.begin(), a.reductions.end(), [&](const plan::DappleReduction& mine) {
    if (mine.exposed(b.block) <= 0) return true;
    return std::any_of(b.reductions.begin(), b.reductions.end(), [&](const plan::DappleReduction& other) {
      return other.stage <= mine.stage && mine.exposed(b.block) <= other.exposed(b.block);
    });
  });
}

void DappleLabels::keep(DappleLabel label) {
  if (label.prefix + 1 == question_.prefixes->size()) {
    const double value =
        plan::dapple_latency(label.block, question_.micro_batches, fill(), label.transfers, label.reductions);
    if (!(value < best_)) return;
    best_ = value;
    best_label_ = static_cast<int>(labels_.size());
  } else {
    if (!(least_latency(label) < best_)) return;
    std::vector<int>& others = at_[label.prefix][hash_of(label)];
    for (const int other : others) {
      if (dominates(labels_[static_cast<std::size_t>(other)], label)) return;
    }
    std::erase_if(others, [&](int other) { return dominates(label, labels_[static_cast<std::size_t>(other)]); });
    others.push_back(static_cast<int>(labels_.size()));
  }
  labels_.push_back(std::move(label));
}

void DappleLabels::extend(int index, std::size_t to) {
  const PrefixFigures& figures = *question_.figures;
  const DappleLabel from = labels_[static_cast<std::size_t>(index)];
  const bool last = to + 1 == question_.prefixes->size();
  const int stage = from.stages;
  if (question_.stages && (last ? stage + 1 != *question_.stages : stage + 1 >= *question_.stages)) return;
  const double parameters = figures.parameter_bytes[to] - figures.parameter_bytes[from.prefix];
  const int most = devices_ - from.devices - (last ? 0 : 1);
  for (int replicas = last ? most : 1; replicas <= most; ++replicas) {
    DappleLabel label{.prefix = to,
                      .previous = index,
                      .stages = stage + 1,
                      .replicas = replicas,
                      .devices = from.devices + replicas,
                      .block = std::max(from.block, block_of(from.prefix, to, replicas)),
                      .transfers = from.transfers,
                      .reductions = {},
                      .placement = {},
                      .left = {}};
    const std::int64_t group = std::int64_t{replicas} * question_.pipelines;
    const auto reduce = [&](DappleLabel& of, bool spans) {
      of.reductions = from.reductions;
      of.reductions.push_back({plan::dapple_all_reduce(parameters, group, spans), stage});
      std::erase_if(of.reductions, [&](const auto& reduction) { return reduction.exposed(of.block) <= 0; });
    };
    reduce(label, group > servers_.largest());
    label.transfers += stage > 0 ? crossing(from.prefix) / plan::kDappleWithinServer : 0;
    if (!(least_latency(label) < best_)) continue;  // not even at its best place
    for (StagePlacement& placement : servers_.placements(from.left, replicas, question_.pipelines)) {
      DappleLabel placed = label;
      placed.transfers = from.transfers;
      if (stage > 0) placed.transfers += crossing(from.prefix) / servers_.bandwidth(from.placement, placement);
      reduce(placed, placement.spans);
      placed.left = from.left;
      for (std::size_t s = 0; s < placed.left.size(); ++s) placed.left[s] -= placement.counts[s];
      placed.placement = std::move(placement);
      keep(std::move(placed));
    }
  }
}

std::vector<DappleLabel> DappleLabels::below(double limit) {
  best_ = limit;
  labels_.clear();
  at_.assign(question_.prefixes->size(), {});
  DappleLabel& start = labels_.emplace_back();
  start.left = servers_.capacities();
  at_[0][0] = {0};
  for (std::size_t from = 0; from + 1 < question_.prefixes->size() && !late_; ++from) {
    std::vector<int> ending;
    for (const auto& [key, labels] : at_[from]) ending.insert(ending.end(), labels.begin(), labels.end());
    std::sort(ending.begin(), ending.end());  // the map's order must not show
    for (const int label : ending) {
      late_ = late_ || std::chrono::steady_clock::now() > deadline_;
      if (late_) break;
      for (std::size_t to = question_.prefixes->size() - 1; to > from; --to) {
        if (question_.prefixes->within(from, to)) extend(label, to);
      }
    }
    at_[from].clear();
  }
  std::vector<DappleLabel> stages;
  for (int label = best_label_; label > 0; label = labels_[static_cast<std::size_t>(label)].previous) {
    stages.push_back(labels_[static_cast<std::size_t>(label)]);
  }
  std::reverse(stages.begin(), stages.end());
  return stages;
}

}  // namespace millrace::partitioners
