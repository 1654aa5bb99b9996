// Sets with constant-time insertion and removal.
#include "partitioners/common/fm/boundary.h"

namespace millrace::partitioners::fm {

Boundary::Boundary(const Labels& labels)
    : labels_(labels),
      sets_(2 * static_cast<std::size_t>(labels.stages())),
      place_(2 * labels.model().netlist->nodes(), kAbsent) {
  for (std::size_t node = 0; node < labels.model().netlist->nodes(); ++node) look_at(static_cast<Node>(node));
}

void Boundary::look_at(Node node) {
  const int stage = labels_.stage(node);
  const auto [first, last] = labels_.range(node);
  put(node, stage, Direction::earlier, first < stage);
  put(node, stage, Direction::later, last > stage);
}

void Boundary::put(Node node, int stage, Direction direction, bool member) {
  std::vector<Node>& set = sets_[static_cast<std::size_t>(stage) * 2 + static_cast<std::size_t>(direction)];
  std::int32_t& place = place_[static_cast<std::size_t>(node) * 2 + static_cast<std::size_t>(direction)];
  if (member == (place != kAbsent)) return;
  if (member) {
    place = static_cast<std::int32_t>(set.size());
    set.push_back(node);
    return;
  }
  const Node last = set.back();
  set[static_cast<std::size_t>(place)] = last;
  place_[static_cast<std::size_t>(last) * 2 + static_cast<std::size_t>(direction)] = place;
  set.pop_back();
  place = kAbsent;
}

void Boundary::moved(Node node, int from) {
  put(node, from, Direction::earlier, false);
  put(node, from, Direction::later, false);
  look_at(node);
  for_neighbours(*labels_.model().netlist, node, [&](Node neighbour) { look_at(neighbour); });
}

}  // namespace millrace::partitioners::fm
