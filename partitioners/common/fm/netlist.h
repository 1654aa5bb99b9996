// A graph as local search sees it: nodes with summed figures, and tensors with one producer and distinct readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "plan/memory.h"

namespace millrace::partitioners::fm {

/// An operator, or a group of operators that stay in one stage.
using Node = std::int32_t;

/// One row of lists, one list after the other.
template <class Item>
class Lists {
 public:
  void add(Item item) { items_.push_back(item); }
  void close() { start_.push_back(items_.size()); }  ///< ends the list at hand
  std::span<const Item> operator[](std::size_t i) const {
    return {items_.data() + start_[i], start_[i + 1] - start_[i]};
  }
  std::size_t start(std::size_t i) const { return start_[i]; }
  std::size_t size() const { return start_.size() - 1; }
  std::size_t items() const { return items_.size(); }

 private:
  std::vector<std::size_t> start_{0};
  std::vector<Item> items_;
};

/// A tensor that a node reads, and whether the node's backward reads it too.
struct Read {
  std::int32_t tensor = 0;
  bool saved = false;
};

/// What a node holds, wherever it is.
struct Holding {
  std::int64_t elements = 0;   ///< of parameters that no other node uses
  std::int64_t weights = 0;    ///< bytes of those and of buffers: what is reduced
  std::int64_t kept = 0;       ///< bytes a row that its backward keeps, besides tensors of the netlist
  std::int64_t kept_once = 0;  ///< bytes a micro-batch

  void add(const Holding& other) {
    elements += other.elements;
    weights += other.weights;
    kept += other.kept;
    kept_once += other.kept_once;
  }
};

struct Net {
  Node producer = -1;      ///< -1: data
  std::int64_t bytes = 0;  ///< a row
  bool kept = false;       ///< the producer's backward keeps it
};

struct Netlist {
  std::vector<Holding> holdings;  ///< by node
  Lists<Read> reads;              ///< by node; each tensor once
  Lists<std::int32_t> outputs;    ///< by node: tensors that other nodes read
  Lists<std::int32_t> ties;       ///< by node: numbers of parameters and buffers that other nodes use too
  std::vector<Net> nets;          ///< tensors with readers
  Lists<Node> readers;            ///< by tensor; each node once, never the producer
  std::vector<Holding> tied;      ///< by number in `ties`

  std::size_t nodes() const { return holdings.size(); }
};

/// One node an operator, numbered alike; `recomputed`: all run again before their backward, layer by layer (METHODS 3).
/// O(operators + tensors + edges).
Netlist make_netlist(const Graph& graph, plan::TrainingBytes sizes, bool recomputed = false);

/// The netlist of groups: `group_of` each node, numbered from 0. \pre the groups have no cycle among them.
Netlist contract(const Netlist& fine, std::span<const Node> group_of, std::size_t groups);

}  // namespace millrace::partitioners::fm
