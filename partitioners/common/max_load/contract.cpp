// Strongly connected components by Tarjan's algorithm, without recursion: graphs may be 100,000 operators deep.
#include "partitioners/common/max_load/contract.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace millrace::partitioners::max_load {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kMostForBitsets = 4096;  // items: implied edges are found with n² bits

void make_distinct(std::vector<std::size_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// Components of a directed graph, numbered so that every edge goes from a lower or equal number to a higher one.
class JoinedComponents {
 public:
  explicit JoinedComponents(const std::vector<std::vector<std::size_t>>& after)
      : after_(after), component_(after.size(), kNone), index_(after.size(), kNone), low_(after.size(), 0) {
    for (std::size_t v = 0; v < after.size(); ++v) {
      if (index_[v] == kNone) visit(v);
    }
    for (std::size_t& c : component_) c = count_ - 1 - c;  // Tarjan closes the last ones first
  }
  const std::vector<std::size_t>& of() const { return component_; }
  std::size_t count() const { return count_; }

 private:
  struct Frame {
    std::size_t vertex = 0;
    std::size_t next = 0;
  };

  void open(std::size_t v) {
    index_[v] = low_[v] = clock_++;
    open_.push_back(v);
    frames_.push_back({v, 0});
  }

  void visit(std::size_t root) {
    open(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const std::size_t v = frame.vertex;
      if (frame.next < after_[v].size()) {
        const std::size_t w = after_[v][frame.next++];
        if (index_[w] == kNone) {
          open(w);
        } else if (component_[w] == kNone) {
          low_[v] = std::min(low_[v], index_[w]);
        }
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) low_[frames_.back().vertex] = std::min(low_[frames_.back().vertex], low_[v]);
      if (low_[v] == index_[v]) close(v);
    }
  }

  void close(std::size_t v) {
    std::size_t w = kNone;
    do {
      w = open_.back();
      open_.pop_back();
      component_[w] = count_;
    } while (w != v);
    ++count_;
  }

  const std::vector<std::vector<std::size_t>>& after_;
  std::vector<std::size_t> component_, index_, low_, open_;
  std::vector<Frame> frames_;
  std::size_t clock_ = 0, count_ = 0;
};

// Order edges between groups; a group of several is a cycle, so that its members share a component.
std::vector<std::vector<std::size_t>> edges_with_groups(const Model& model, const std::vector<std::size_t>& group_of) {
  std::vector<std::vector<std::size_t>> after = model.after;
  std::map<std::size_t, std::pair<Item, Item>> ends;  // first and last member of each group
  for (Item item = 0; item < model.size(); ++item) {
    const auto [entry, fresh] = ends.try_emplace(group_of[item], item, item);
    if (fresh) continue;
    after[entry->second.second].push_back(item);
    entry->second.second = item;
  }
  for (const auto& group : ends) {
    const auto [first, last] = group.second;
    if (first != last) after[last].push_back(first);
  }
  return after;
}

void order_from_before(Model& model) {
  model.after.assign(model.before.size(), {});
  for (Item item = 0; item < model.before.size(); ++item) {
    make_distinct(model.before[item]);
    for (const Item earlier : model.before[item]) model.after[earlier].push_back(item);
  }
}

std::vector<Transfer> merged_transfers(const Model& model, const std::vector<std::size_t>& item_of) {
  std::map<std::pair<Item, std::vector<Item>>, double> seconds;
  for (const Transfer& transfer : model.transfers) {
    const Item from = item_of[transfer.from];
    std::vector<Item> to;
    for (const Item reader : transfer.to) {
      if (item_of[reader] != from) to.push_back(item_of[reader]);
    }
    make_distinct(to);
    if (!to.empty()) seconds[{from, std::move(to)}] += transfer.seconds;
  }
  std::vector<Transfer> transfers;
  for (auto& [ends, cost] : seconds) transfers.push_back({ends.first, ends.second, cost});
  return transfers;
}

}  // namespace

Model contracted(const Model& model, const std::vector<std::size_t>& group_of) {
  const JoinedComponents components(edges_with_groups(model, group_of));
  const std::vector<std::size_t>& item_of = components.of();
  Model result;
  result.kinds = model.kinds;
  result.accelerator_s.assign(components.count(), 0.0);
  result.cpu_s = result.bytes = result.accelerator_s;
  result.members.resize(components.count());
  result.before.resize(components.count());
  for (Item item = 0; item < model.size(); ++item) {
    const Item into = item_of[item];
    result.accelerator_s[into] += model.accelerator_s[item];
    result.cpu_s[into] += model.cpu_s[item];
    result.bytes[into] += model.bytes[item];
    auto& members = result.members[into];
    members.insert(members.end(), model.members[item].begin(), model.members[item].end());
    for (const Item earlier : model.before[item]) {
      if (item_of[earlier] != into) result.before[into].push_back(item_of[earlier]);
    }
  }
  order_from_before(result);
  result.transfers = merged_transfers(model, item_of);
  without_implied_edges(result);
  index_transfers(result);
  return result;
}

Model without(const Model& model, const std::vector<bool>& dropped) {
  std::vector<std::vector<Item>> before = model.before;
  std::vector<std::size_t> item_of(model.size(), kNone);
  Model result;
  result.kinds = model.kinds;
  for (Item item = 0; item < model.size(); ++item) {
    // A dropped predecessor stands for its own: they are complete, since they come first.
    std::vector<Item> kept;
    for (const Item earlier : before[item]) {
      if (!dropped[earlier]) {
        kept.push_back(earlier);
      } else {
        kept.insert(kept.end(), before[earlier].begin(), before[earlier].end());
      }
    }
    make_distinct(kept);
    before[item] = std::move(kept);
    if (dropped[item]) continue;
    item_of[item] = result.accelerator_s.size();
    result.accelerator_s.push_back(model.accelerator_s[item]);
    result.cpu_s.push_back(model.cpu_s[item]);
    result.bytes.push_back(model.bytes[item]);
    result.members.push_back(model.members[item]);
    result.before.emplace_back();
    for (const Item earlier : before[item]) result.before.back().push_back(item_of[earlier]);
  }
  order_from_before(result);
  for (const Transfer& transfer : model.transfers) {
    Transfer copy{item_of[transfer.from], {}, transfer.seconds};
    for (const Item reader : transfer.to) copy.to.push_back(item_of[reader]);
    result.transfers.push_back(std::move(copy));
  }
  without_implied_edges(result);
  index_transfers(result);
  return result;
}

void without_implied_edges(Model& model) {
  const std::size_t n = model.size();
  if (n > kMostForBitsets) return;
  const std::size_t words = (n + 63) / 64;
  std::vector<std::uint64_t> above(n * words, 0);  // all that come before an item, itself among them
  for (Item item = 0; item < n; ++item) {
    std::uint64_t* mine = &above[item * words];
    auto& before = model.before[item];
    std::vector<Item> kept;
    // From the latest: an earlier one that a later one implies is known by then.
    for (auto earlier = before.rbegin(); earlier != before.rend(); ++earlier) {
      if ((mine[*earlier / 64] >> (*earlier % 64) & 1) != 0) continue;
      kept.push_back(*earlier);
      const std::uint64_t* theirs = &above[*earlier * words];
      for (std::size_t w = 0; w < words; ++w) mine[w] |= theirs[w];
    }
    mine[item / 64] |= std::uint64_t{1} << (item % 64);
    std::reverse(kept.begin(), kept.end());
    before = std::move(kept);
  }
  order_from_before(model);
}

}  // namespace millrace::partitioners::max_load
