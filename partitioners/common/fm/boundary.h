// Which nodes of each stage can leave it, kept up to date move by move.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "partitioners/common/fm/labels.h"

namespace millrace::partitioners::fm {

enum class Direction : std::uint8_t { earlier, later };

class Boundary {
 public:
  explicit Boundary(const Labels& labels);

  /// Nodes of `stage` that have no predecessor (earlier) or no successor (later) in it.
  std::span<const Node> nodes(int stage, Direction direction) const {
    return sets_[static_cast<std::size_t>(stage) * 2 + static_cast<std::size_t>(direction)];
  }

  /// After `node` went from stage `from`: looks at it and at its neighbours again.
  void moved(Node node, int from);

  /// Calls `visit` with each predecessor and successor of `node`; some come more than once.
  template <class Visit>
  static void for_neighbours(const Netlist& netlist, Node node, Visit visit) {
    for (const Read& read : netlist.reads[static_cast<std::size_t>(node)]) {
      const Node producer = netlist.nets[static_cast<std::size_t>(read.tensor)].producer;
      if (producer >= 0) visit(producer);
    }
    for (const std::int32_t tensor : netlist.outputs[static_cast<std::size_t>(node)]) {
      for (const Node reader : netlist.readers[static_cast<std::size_t>(tensor)]) visit(reader);
    }
  }

 private:
  static constexpr std::int32_t kAbsent = -1;

  void look_at(Node node);
  void put(Node node, int stage, Direction direction, bool member);

  const Labels& labels_;
  std::vector<std::vector<Node>> sets_;  // [stage · 2 + direction]
  std::vector<std::int32_t> place_;      // [node · 2 + direction]: position in its set
};

}  // namespace millrace::partitioners::fm
