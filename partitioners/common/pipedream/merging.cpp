// Repeats three rules until none applies; each moves a free layer over a border that gets no dearer by it.
#include "partitioners/common/pipedream/merging.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/index.h"

namespace millrace::partitioners {
namespace {

constexpr int kNoGroup = -1;

class Merging {
 public:
  Merging(const plan::LayerFigures& layers, bool keeps_activations)
      : layers_(layers), keeps_activations_(keeps_activations), group_(layers.seconds.size()), members_(group_.size()) {
    std::iota(group_.begin(), group_.end(), 0);
    for (std::size_t op = 0; op < group_.size(); ++op) {
      members_[op] = {static_cast<int>(op)};
      if (layers.is_input[op]) group_[op] = kNoGroup;
    }
  }

  MergedLayers run() {
    MergedLayers merged;
    link();
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t g = 0; g < group_.size(); ++g) {
        if (group_[g] != static_cast<int>(g) || !is_free(g)) continue;
        const int target = target_of(g);
        if (target == static_cast<int>(g)) continue;
        if (target == kNoGroup && merged.idle == kNoGroup)
          merged.idle = *std::min_element(members_[g].begin(), members_[g].end());
        join(g, target);
        changed = true;
      }
    }
    merged.group = std::move(group_);
    return merged;
  }

 private:
  void join(std::size_t g, int target) {
    for (const int op : members_[g]) {
      group_[at(op)] = target;
      if (target != kNoGroup) members_[at(target)].push_back(op);
    }
    link();
  }

  // Edges between groups, each once.
  void link() {
    producers_.assign(group_.size(), {});
    readers_.assign(group_.size(), {});
    for (std::size_t op = 0; op < group_.size(); ++op) {
      for (const OpId reader : layers_.readers[op]) {
        const int from = group_[op], to = group_[at(reader)];
        if (from == kNoGroup || from == to) continue;
        readers_[at(from)].push_back(to);
        producers_[at(to)].push_back(from);
      }
    }
    for (auto* edges : {&producers_, &readers_}) {
      for (std::vector<int>& list : *edges) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
    }
  }

  // Whether moving the group between stages leaves their own figures as they are.
  bool is_free(std::size_t g) const {
    return std::all_of(members_[g].begin(), members_[g].end(), [&](int op) {
      const bool kept = keeps_activations_ && layers_.output_bytes[at(op)] > 0;
      return layers_.seconds[at(op)] == 0 && layers_.parameter_bytes[at(op)] == 0 && !kept;
    });
  }

  // Bytes of the outputs of group `from` that group `to` reads; that any other group reads with kNoGroup.
  double bytes(int from, int to) const {
    double sum = 0;
    for (const int op : members_[at(from)]) {
      const auto read = [&](OpId reader) {
        const int other = group_[at(reader)];
        return to == kNoGroup ? other != from : other == to;
      };
      const std::vector<OpId>& readers = layers_.readers[at(op)];
      if (std::any_of(readers.begin(), readers.end(), read)) sum += layers_.output_bytes[at(op)];
    }
    return sum;
  }

  // The group that g joins; g itself: none; kNoGroup: g can be anywhere before its readers.
  int target_of(std::size_t g) const {
    const std::vector<int>&producers = producers_[g], &readers = readers_[g];
    const double sent = bytes(static_cast<int>(g), kNoGroup);
    double received = 0;
    for (const int producer : producers) received += bytes(producer, static_cast<int>(g));
    if (producers.empty() && sent == 0 && !readers.empty()) return kNoGroup;
    // Later, into the stage of its only reader: what it sent crossed the border, now what it receives does.
    if (readers.size() == 1 && sent >= received) return readers[0];
    // Earlier, into the stage of its only producer: the other way round.
    const bool alone = producers.size() == 1 && readers_[at(producers[0])].size() == 1;
    if (producers.size() == 1 && (readers.empty() || (alone && sent <= received))) return producers[0];
    return static_cast<int>(g);
  }

  const plan::LayerFigures& layers_;
  bool keeps_activations_;
  std::vector<int> group_;                 // by layer
  std::vector<std::vector<int>> members_;  // by group, its own layer first
  std::vector<std::vector<int>> producers_, readers_;
};

}  // namespace

MergedLayers merge_free_layers(const plan::LayerFigures& layers, bool keeps_activations) {
  return Merging(layers, keeps_activations).run();
}

}  // namespace millrace::partitioners
