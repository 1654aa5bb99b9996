// Looks at the graph of parts: its strongly connected components, and an order of them.
#include "partitioners/common/repair.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "partitioners/common/equal_cuts.h"

namespace millrace::partitioners {
namespace {

// Readers of each part, distinct.
std::vector<std::vector<int>> quotient(const OpEdges& successors, std::span<const int> parts, int count) {
  std::vector<std::vector<int>> readers(static_cast<std::size_t>(count));
  for (std::size_t op = 0; op < parts.size(); ++op) {
    for (const OpId next : successors.of(static_cast<OpId>(op))) {
      const int to = parts[static_cast<std::size_t>(next)];
      if (to != parts[op]) readers[static_cast<std::size_t>(parts[op])].push_back(to);
    }
  }
  for (std::vector<int>& list : readers) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return readers;
}

// Tarjan's strongly connected components without recursion; component of each node, any numbering.
class Components {
 public:
  explicit Components(const std::vector<std::vector<int>>& edges)
      : edges_(edges), number_(edges.size(), -1), low_(edges.size(), 0), component_(edges.size(), -1) {}

  std::vector<int> run() {
    for (int node = 0; node < static_cast<int>(edges_.size()); ++node) {
      if (number_[static_cast<std::size_t>(node)] < 0) visit(node);
    }
    return std::move(component_);
  }

 private:
  struct Step {
    int node = 0;
    std::size_t next = 0;  // edge to look at
  };

  void enter(int node) {
    const auto at = static_cast<std::size_t>(node);
    number_[at] = low_[at] = entered_++;
    open_.push_back(node);
    path_.push_back({node, 0});
  }

  void visit(int root) {
    enter(root);
    while (!path_.empty()) {
      Step& step = path_.back();
      const auto at = static_cast<std::size_t>(step.node);
      if (step.next < edges_[at].size()) {
        const int to = edges_[at][step.next++];
        if (number_[static_cast<std::size_t>(to)] < 0) {
          enter(to);
        } else if (component_[static_cast<std::size_t>(to)] < 0) {
          low_[at] = std::min(low_[at], number_[static_cast<std::size_t>(to)]);
        }
        continue;
      }
      const int node = step.node;
      path_.pop_back();
      if (!path_.empty()) {
        int& above = low_[static_cast<std::size_t>(path_.back().node)];
        above = std::min(above, low_[at]);
      }
      if (low_[at] == number_[at]) close(node);
    }
  }

  void close(int root) {
    for (int node = -1; node != root;) {
      node = open_.back();
      open_.pop_back();
      component_[static_cast<std::size_t>(node)] = components_;
    }
    ++components_;
  }

  const std::vector<std::vector<int>>& edges_;
  std::vector<int> number_, low_, component_;
  std::vector<int> open_;
  std::vector<Step> path_;
  int entered_ = 0, components_ = 0;
};

std::vector<int> sizes(std::span<const int> parts, int count) {
  std::vector<int> sizes(static_cast<std::size_t>(count), 0);
  for (const int part : parts) ++sizes[static_cast<std::size_t>(part)];
  return sizes;
}

// Numbers acyclic parts so that each comes after those it needs, first the one whose operators come first; empty ones
// fall out. Returns how many there are.
int number_in_order(const OpEdges& successors, Parts& parts, int count, const Order& order) {
  const std::vector<std::vector<int>> readers = quotient(successors, parts, count);
  std::vector<int> waits(static_cast<std::size_t>(count), 0);
  for (const auto& list : readers) {
    for (const int reader : list) ++waits[static_cast<std::size_t>(reader)];
  }
  std::vector<std::size_t> first(static_cast<std::size_t>(count), order.size());
  for (std::size_t i = order.size(); i-- > 0;) {
    first[static_cast<std::size_t>(parts[static_cast<std::size_t>(order[i])])] = i;
  }
  std::set<std::pair<std::size_t, int>> ready;
  for (int part = 0; part < count; ++part) {
    const auto at = static_cast<std::size_t>(part);
    if (first[at] < order.size() && waits[at] == 0) ready.emplace(first[at], part);
  }
  std::vector<int> number(static_cast<std::size_t>(count), -1);
  int next = 0;
  while (!ready.empty()) {
    const int part = ready.begin()->second;
    ready.erase(ready.begin());
    number[static_cast<std::size_t>(part)] = next++;
    for (const int reader : readers[static_cast<std::size_t>(part)]) {
      const auto at = static_cast<std::size_t>(reader);
      if (--waits[at] == 0) ready.emplace(first[at], reader);
    }
  }
  for (int& part : parts) part = number[static_cast<std::size_t>(part)];
  return next;
}

// Cuts parts along the order until there are `count`: each next cut goes to the part whose pieces are heaviest.
void fill(Parts& parts, int used, int count, const Order& order, std::span<const double> weights) {
  std::vector<std::vector<OpId>> members(static_cast<std::size_t>(used));
  std::vector<double> weight(static_cast<std::size_t>(used), 0.0);
  for (const OpId op : order) {
    const auto part = static_cast<std::size_t>(parts[static_cast<std::size_t>(op)]);
    members[part].push_back(op);
    weight[part] += weights[static_cast<std::size_t>(op)];
  }
  std::vector<int> pieces(static_cast<std::size_t>(used), 1);
  for (int have = used; have < count; ++have) {
    std::size_t heaviest = members.size();
    const auto key = [&](std::size_t part) {  // by operators where weights are zero
      return std::pair(weight[part] / pieces[part], static_cast<double>(members[part].size()) / pieces[part]);
    };
    for (std::size_t part = 0; part < members.size(); ++part) {
      if (static_cast<std::size_t>(pieces[part]) == members[part].size()) continue;
      if (heaviest == members.size() || key(part) > key(heaviest)) heaviest = part;
    }
    ++pieces[heaviest];
  }
  int number = 0;
  for (std::size_t part = 0; part < members.size(); ++part) {
    std::vector<double> own;
    for (const OpId op : members[part]) own.push_back(weights[static_cast<std::size_t>(op)]);
    std::size_t begin = 0;
    for (const std::size_t end : equal_cuts(own, pieces[part])) {
      for (; begin < end; ++begin) parts[static_cast<std::size_t>(members[part][begin])] = number;
      ++number;
    }
  }
}

// Each operator in its part or in the last one of those it needs, parts in the order of their mean places.
Parts pushed(const OpEdges& successors, std::span<const int> parts, int count, const Order& order) {
  std::vector<double> mean(static_cast<std::size_t>(count), 0.0);
  const std::vector<int> size = sizes(parts, count);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto part = static_cast<std::size_t>(parts[static_cast<std::size_t>(order[i])]);
    mean[part] += static_cast<double>(i) / size[part];
  }
  std::vector<int> by_mean(static_cast<std::size_t>(count));
  std::iota(by_mean.begin(), by_mean.end(), 0);
  std::stable_sort(by_mean.begin(), by_mean.end(),
                   [&](int a, int b) { return mean[static_cast<std::size_t>(a)] < mean[static_cast<std::size_t>(b)]; });
  std::vector<int> rank(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < by_mean.size(); ++i) rank[static_cast<std::size_t>(by_mean[i])] = static_cast<int>(i);
  Parts result(parts.size(), 0);
  for (const OpId op : order) {
    int& mine = result[static_cast<std::size_t>(op)];
    mine = std::max(mine, rank[static_cast<std::size_t>(parts[static_cast<std::size_t>(op)])]);
    for (const OpId next : successors.of(op)) {
      int& theirs = result[static_cast<std::size_t>(next)];
      theirs = std::max(theirs, mine);
    }
  }
  return result;
}

}  // namespace

std::string fault_of(const OpEdges& successors, std::span<const int> parts, int count) {
  const std::vector<int> size = sizes(parts, count);
  const auto empty = std::count(size.begin(), size.end(), 0);
  if (empty > 0) return fmt::format("{} of {} parts are empty", empty, count);
  const std::vector<int> component = Components(quotient(successors, parts, count)).run();
  std::set<int> distinct(component.begin(), component.end());
  const int cyclic = count - static_cast<int>(distinct.size());
  return cyclic > 0 ? fmt::format("{} of {} parts need each other", cyclic + 1, count) : "";
}

std::vector<Parts> repaired(const OpEdges& successors, std::span<const int> parts, int count, const Order& order,
                            std::span<const double> weights) {
  Parts merged(parts.begin(), parts.end());
  const std::vector<int> component = Components(quotient(successors, parts, count)).run();
  for (int& part : merged) part = component[static_cast<std::size_t>(part)];
  std::vector<Parts> results;
  for (Parts candidate : {pushed(successors, parts, count, order), std::move(merged)}) {
    const int used = number_in_order(successors, candidate, count, order);
    fill(candidate, used, count, order, weights);
    if (std::find(results.begin(), results.end(), candidate) == results.end()) results.push_back(std::move(candidate));
  }
  return results;
}

}  // namespace millrace::partitioners
