// Walks without recursion: graphs have chains of 100,000 nodes and more.
#include "import/digraph.h"

#include <algorithm>

namespace millrace::import {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct Visit {
  std::size_t node;
  std::size_t next = 0;  // successor to look at
};

}  // namespace

std::vector<std::size_t> depth_first_order(const Successors& successors) {
  std::vector<std::size_t> open(successors.size(), 0);  // edges from nodes that are not in the order yet
  for (const auto& list : successors) {
    for (const std::size_t node : list) ++open[node];
  }
  std::vector<std::size_t> ready, order;
  for (std::size_t node = successors.size(); node-- > 0;) {
    if (open[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    const std::size_t node = ready.back();
    ready.pop_back();
    order.push_back(node);
    const auto& list = successors[node];
    for (auto next = list.rbegin(); next != list.rend(); ++next) {
      if (--open[*next] == 0) ready.push_back(*next);
    }
  }
  return order;
}

std::vector<std::size_t> find_cycle(const Successors& successors) {
  enum class State : unsigned char { fresh, open, done };
  std::vector<State> states(successors.size(), State::fresh);
  std::vector<Visit> path;
  for (std::size_t start = 0; start < successors.size(); ++start) {
    if (states[start] != State::fresh) continue;
    path.push_back({start});
    states[start] = State::open;
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next == successors[visit.node].size()) {
        states[visit.node] = State::done;
        path.pop_back();
        continue;
      }
      const std::size_t next = successors[visit.node][visit.next++];
      if (states[next] == State::fresh) {
        states[next] = State::open;
        path.push_back({next});
      } else if (states[next] == State::open) {
        std::vector<std::size_t> cycle;
        const auto first = std::find_if(path.begin(), path.end(), [&](const Visit& v) { return v.node == next; });
        for (auto step = first; step != path.end(); ++step) cycle.push_back(step->node);
        return cycle;
      }
    }
  }
  return {};
}

// Tarjan 1972: the lowest position that a node reaches inside the open component.
std::vector<std::size_t> components(const Successors& successors) {
  const std::size_t size = successors.size();
  std::vector<std::size_t> position(size, kNone), low(size, 0), found(size, kNone);
  std::vector<std::size_t> open;
  std::vector<Visit> path;
  std::size_t visited = 0, count = 0;
  const auto enter = [&](std::size_t node) {
    position[node] = low[node] = visited++;
    open.push_back(node);
    path.push_back({node});
  };
  for (std::size_t start = 0; start < size; ++start) {
    if (position[start] != kNone) continue;
    enter(start);
    while (!path.empty()) {
      Visit& visit = path.back();
      const std::size_t node = visit.node;
      if (visit.next < successors[node].size()) {
        const std::size_t next = successors[node][visit.next++];
        if (position[next] == kNone) {
          enter(next);
        } else if (found[next] == kNone) {
          low[node] = std::min(low[node], position[next]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back().node] = std::min(low[path.back().node], low[node]);
      if (low[node] != position[node]) continue;
      while (found[node] == kNone) {
        found[open.back()] = count;
        open.pop_back();
      }
      ++count;
    }
  }
  std::vector<std::size_t> renumbered(count, kNone);
  std::size_t next = 0;
  for (std::size_t& component : found) {
    if (renumbered[component] == kNone) renumbered[component] = next++;
    component = renumbered[component];
  }
  return found;
}

}  // namespace millrace::import
