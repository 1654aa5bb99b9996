// Applies the rules round by round until none applies.
#include "partitioners/common/max_load/reduce.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "partitioners/common/max_load/contract.h"

namespace millrace::partitioners::max_load {
namespace {

constexpr std::size_t kMostEdgesForDropped = 64;  // order edges that stand in for one item left out

class Groups {
 public:
  explicit Groups(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  std::size_t find(std::size_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    parent_[std::max(a, b)] = std::min(a, b);
    joined_ = true;
  }
  bool joined() const { return joined_; }
  std::vector<std::size_t> all() {
    for (std::size_t v = 0; v < parent_.size(); ++v) parent_[v] = find(v);
    return parent_;
  }

 private:
  std::vector<std::size_t> parent_;
  bool joined_ = false;
};

class Reducer {
 public:
  Reducer(const Model& model, double threshold) : model_(model), threshold_(threshold) {
    for (const DeviceKind& kind : model.kinds) {
      (kind.cpu ? cores_ : accelerators_) += kind.devices.size();
    }
  }

  Model run() {
    forget_bytes();
    std::vector<std::size_t> own(model_.size());
    std::iota(own.begin(), own.end(), std::size_t{0});
    model_ = contracted(model_, own);  // adds up equal transfers, drops implied edges
    while (merge() || drop()) {
    }
    return std::move(model_);
  }

 private:
  void forget_bytes() {
    const double all = std::accumulate(model_.bytes.begin(), model_.bytes.end(), 0.0);
    const bool fit = std::all_of(model_.kinds.begin(), model_.kinds.end(),
                                 [&](const DeviceKind& kind) { return all <= kind.memory; });
    if (fit) model_.bytes.assign(model_.size(), 0.0);
  }

  bool weightless(Item item) const {
    return model_.accelerator_s[item] == 0 && model_.cpu_s[item] == 0 && model_.bytes[item] == 0;
  }

  bool merge() {
    Groups groups(model_.size());
    for (Item item = 0; item < model_.size(); ++item) {
      if (!weightless(item)) continue;
      if (model_.before[item].size() == 1 && belongs_to(item, model_.before[item].front())) {
        groups.join(item, model_.before[item].front());
      } else if (model_.after[item].size() == 1 && belongs_to(item, model_.after[item].front())) {
        groups.join(item, model_.after[item].front());
      } else if (model_.before[item].empty() && model_.after[item].empty()) {
        join_anywhere(item, groups);
      }
    }
    join_inseparable(groups);
    if (!groups.joined()) return false;
    model_ = contracted(model_, groups.all());
    return true;
  }

  // An item that has no place in the order can be with any other.
  void join_anywhere(Item item, Groups& groups) const {
    for (const std::size_t t : model_.touching[item]) {
      const Transfer& transfer = model_.transfers[t];
      const Item other = transfer.from == item ? transfer.to.front() : transfer.from;
      if (belongs_to(item, other)) return groups.join(item, other);
    }
  }

  // Moving `item` to the device of `other` saves the transfers between just these two; those that hold both cost no one
  // more; each of the others may begin to cost.
  bool belongs_to(Item item, Item other) const {
    double saved = 0, risked = 0;
    for (const std::size_t t : model_.touching[item]) {
      const Transfer& transfer = model_.transfers[t];
      const bool both = transfer.from == other || std::binary_search(transfer.to.begin(), transfer.to.end(), other);
      if (!both) risked += transfer.seconds;
      if (both && transfer.to.size() == 1) saved += transfer.seconds;
    }
    return saved >= risked;
  }

  void join_inseparable(Groups& groups) {
    if (!(threshold_ < std::numeric_limits<double>::infinity())) return;
    std::map<std::pair<Item, Item>, double> shared;
    for (const Transfer& transfer : model_.transfers) {
      for (const Item reader : transfer.to) {
        shared[{std::min(transfer.from, reader), std::max(transfer.from, reader)}] += transfer.seconds;
      }
    }
    for (const auto& [pair, seconds] : shared) {
      if (separation(pair.first, pair.second, seconds) >= threshold_) groups.join(pair.first, pair.second);
    }
  }

  // The least that the fuller of two devices has, when each takes one of the two items.
  double separation(Item a, Item b, double shared) const {
    const double a_cpu = model_.cpu_s[a], b_cpu = model_.cpu_s[b];
    const double a_accelerator = model_.accelerator_s[a] + shared, b_accelerator = model_.accelerator_s[b] + shared;
    double least = std::numeric_limits<double>::infinity();
    if (accelerators_ >= 2) least = std::min(least, std::max(a_accelerator, b_accelerator));
    if (cores_ >= 2) least = std::min(least, std::max(a_cpu, b_cpu));
    if (accelerators_ >= 1 && cores_ >= 1) {
      least = std::min({least, std::max(a_accelerator, b_cpu), std::max(a_cpu, b_accelerator)});
    }
    return least;
  }

  bool drop() {
    std::vector<bool> dropped(model_.size(), false);
    bool any = false;
    for (Item item = 0; item < model_.size(); ++item) {
      const bool few = model_.before[item].size() * model_.after[item].size() <= kMostEdgesForDropped;
      // Neighbours are left for the next round, so that edges stand in for one item at a time.
      const bool next = std::any_of(model_.before[item].begin(), model_.before[item].end(),
                                    [&](Item earlier) { return dropped[earlier]; });
      if (!weightless(item) || !model_.touching[item].empty() || !few || next) continue;
      dropped[item] = any = true;
    }
    if (any && !std::all_of(dropped.begin(), dropped.end(), [](bool d) { return d; })) {
      model_ = without(model_, dropped);
      return true;
    }
    return false;
  }

  Model model_;
  double threshold_;
  std::size_t accelerators_ = 0, cores_ = 0;
};

}  // namespace

Model reduced(const Model& model, double threshold) { return Reducer(model, threshold).run(); }

Parts placed(const Model& original, const Model& reduced, const Parts& chain) {
  constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> part_of(original.size(), kNowhere);
  for (std::size_t p = 0; p < chain.size(); ++p) {
    for (const Item item : chain[p].items) {
      for (const OpId member : reduced.members[item]) part_of[static_cast<Item>(member)] = p;
    }
  }
  Parts parts;
  for (const Part& part : chain) parts.push_back({part.kind, {}});
  for (Item item = 0; item < original.size(); ++item) {
    if (part_of[item] == kNowhere) {
      part_of[item] = 0;
      for (const Item earlier : original.before[item]) part_of[item] = std::max(part_of[item], part_of[earlier]);
    }
    parts[part_of[item]].items.push_back(item);
  }
  parts.erase(std::remove_if(parts.begin(), parts.end(), [](const Part& part) { return part.items.empty(); }),
              parts.end());
  return parts;
}

}  // namespace millrace::partitioners::max_load
