// Propagates through a queue of operators: those that pass a tensor through first, then those that change its shape,
// conflicts last; forward in topological order before backward in reverse order.
#include "shard/propagate.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "shard/costs.h"
#include "shard/index.h"

namespace millrace::shard {
namespace {

enum class Turn : std::uint8_t { pass_through, shape_changing, conflict };
enum class Direction : std::uint8_t { forward, backward };

class Propagation {
 public:
  Propagation(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
              const MeshLinks& links)
      : graph_(graph), ops_(ops), tensors_(tensors), mesh_(mesh), links_(links) {
    decision_.placements.resize(graph.tensors().size());
    decision_.origins.resize(graph.tensors().size());
    decision_.uses.resize(static_cast<std::size_t>(graph.size()));
    queued_.resize(static_cast<std::size_t>(graph.size()) * static_cast<std::size_t>(mesh.axis_count()));
  }

  Decision run(const std::vector<Given>& given) {
    for (const Given& one : given) {
      decision_.placements[index(one.tensor)][index(one.axis)] = one.property;
      decision_.origins[index(one.tensor)][index(one.axis)] = {Origin::Kind::annotated, one.annotation};
    }
    for (const Given& one : given) tell_neighbours(one.tensor, one.axis);
    while (!queue_.empty()) {
      const Item item = queue_.top();
      queue_.pop();
      queued_[slot(item.op, item.axis)] &= static_cast<std::uint8_t>(~bit(item.turn, item.direction));
      visit(item.op, item.axis, item.turn == Turn::conflict);
    }
    settle();
    return std::move(decision_);
  }

 private:
  struct Item {
    Turn turn;
    Direction direction;
    OpId op;
    int axis;
    // The queue gives the largest first.
    bool operator<(const Item& other) const { return key() > other.key(); }
    std::tuple<Turn, Direction, OpId, int> key() const {
      return {turn, direction, direction == Direction::forward ? op : -op, axis};
    }
  };

  static std::uint8_t bit(Turn turn, Direction direction) {
    return static_cast<std::uint8_t>(1U << (2 * static_cast<unsigned>(turn) + static_cast<unsigned>(direction)));
  }
  std::size_t slot(OpId op, int axis) const {
    return index(op) * static_cast<std::size_t>(mesh_.axis_count()) + index(axis);
  }
  Property at(TensorId tensor, int axis) const { return decision_.placements[index(tensor)][index(axis)]; }

  void push(OpId op, int axis, Turn turn, Direction direction) {
    std::uint8_t& flags = queued_[slot(op, axis)];
    if ((flags & bit(turn, direction)) != 0) return;
    flags |= bit(turn, direction);
    queue_.push({turn, direction, op, axis});
  }

  void tell_neighbours(TensorId tensor, int axis) {
    const auto turn = [&](OpId op) { return ops_.row(op).pass_through ? Turn::pass_through : Turn::shape_changing; };
    for (const OpId op : graph_.consumers(tensor)) push(op, axis, turn(op), Direction::forward);
    const OpId producer = graph_.tensor(tensor).producer;
    if (producer >= 0) push(producer, axis, turn(producer), Direction::backward);
  }

  bool fits_with(TensorId tensor, int axis, Property property) const {
    Placement next = decision_.placements[index(tensor)];
    next[index(axis)] = property;
    return fits(tensors_.view(tensor), next, mesh_);
  }

  // Every operand that has the letter can carry the split beside what it carries on other axes already.
  bool carries(OpId op, int axis, const Use& use) const {
    const auto operands = ops_.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Property property = ops_.property(op, i, use);
      if (property.is_split() && !fits_with(operands[i].tensor, axis, property)) return false;
    }
    return true;
  }

  std::vector<Use> candidates(OpId op, int axis) const {
    std::vector<Use> found;
    const auto add = [&](const Use& use) {
      if (std::find(found.begin(), found.end(), use) == found.end()) found.push_back(use);
    };
    const auto operands = ops_.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Property property = at(operands[i].tensor, axis);
      if (property.is_split()) {
        const std::int8_t letter = operands[i].letters[static_cast<std::size_t>(property.dim)];
        const Use use{Use::Kind::letter, letter, -1, property.ratio};
        if (letter >= 0 && ops_.splits(op, letter) && carries(op, axis, use)) add(use);
      } else if (property == kPartialSum && operands[i].side == Side::input && operands[i].linear != '-') {
        const Use use{Use::Kind::partial, -1,
                      operands[i].linear == '*' ? static_cast<std::int16_t>(i) : std::int16_t{-1}, 0};
        if (passes_partial(graph_, ops_, tensors_, decision_.placements, op, use, axis)) add(use);
      }
    }
    return found;
  }

  // Conversions that `use` causes on the edges whose tensors are decided, and on parameters.
  Seconds cost(OpId op, int axis, const Use& use) const {
    Seconds sum{};
    const auto operands = ops_.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      Property kept = at(operands[i].tensor, axis);
      // A parameter that is open yet follows the operator, or is whole; its gradient then is reduced.
      if (!kept.is_set() && operands[i].side == Side::parameter) {
        const Property needed = ops_.property(op, i, use);
        kept = needed.is_split() ? needed : kReplicated;
      }
      if (!kept.is_set()) continue;
      const Edge edge{kept, ops_.property(op, i, use), operands[i].side == Side::output,
                      has_gradient(graph_, operands[i]),
                      static_cast<double>(tensors_.view(operands[i].tensor).bytes())};
      sum += edge_time(edge, use, mesh_.axis_size(axis), links_.link(1U << axis));
    }
    return sum;
  }

  const Use& cheapest(OpId op, int axis, const std::vector<Use>& uses) const {
    return *std::min_element(uses.begin(), uses.end(),
                             [&](const Use& a, const Use& b) { return cost(op, axis, a) < cost(op, axis, b); });
  }

  // A partial sum is kept while every reader is linear in it; the first that needs the whole ends it for all.
  bool kept_partial(TensorId tensor) const {
    const auto readers = graph_.consumers(tensor);
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](OpId op) {
      const auto operands = ops_.operands(op);
      return std::all_of(operands.begin(), operands.end(),
                         [&](const Operand& one) { return one.tensor != tensor || one.linear != '-'; });
    });
  }

  // What a user said of an operand goes before what came to the others by propagation: no conflict.
  std::vector<Use> annotated(OpId op, int axis, const std::vector<Use>& found) const {
    std::vector<Use> said;
    const auto operands = ops_.operands(op);
    for (const Use& use : found) {
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const TensorId tensor = operands[i].tensor;
        const bool given = decision_.origins[index(tensor)][index(axis)].kind == Origin::Kind::annotated;
        if (!given || !at(tensor, axis).is_split() || ops_.property(op, i, use) != at(tensor, axis)) continue;
        said.push_back(use);
        break;
      }
    }
    return said;
  }

  void visit(OpId op, int axis, bool resolve) {
    std::vector<Use> found = candidates(op, axis);
    if (found.size() > 1) {
      std::vector<Use> said = annotated(op, axis, found);
      if (!said.empty()) found = std::move(said);
    }
    if (found.empty()) return;
    if (found.size() > 1 && !resolve) {
      push(op, axis, Turn::conflict, Direction::forward);
      return;
    }
    write_back(op, axis, found.size() == 1 ? found.front() : cheapest(op, axis, found));
  }

  void write_back(OpId op, int axis, const Use& use) {
    const auto operands = ops_.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Property property = ops_.property(op, i, use);
      const TensorId tensor = operands[i].tensor;
      if (at(tensor, axis).is_set()) continue;
      const bool moves =
          property.is_split() || (property.is_partial() && operands[i].side == Side::output && kept_partial(tensor));
      if (!moves) continue;
      decision_.placements[index(tensor)][index(axis)] = property;
      decision_.origins[index(tensor)][index(axis)] = {Origin::Kind::propagated, op};
      tell_neighbours(tensor, axis);
    }
  }

  // What nothing was said about is replicated; then each operator takes the cheapest signature that its edges offer.
  void settle() {
    for (Placement& placement : decision_.placements) {
      for (int axis = 0; axis < mesh_.axis_count(); ++axis) {
        if (!placement[index(axis)].is_set()) placement[index(axis)] = kReplicated;
      }
    }
    for (OpId op = 0; op < graph_.size(); ++op) {
      for (int axis = 0; axis < mesh_.axis_count(); ++axis) {
        std::vector<Use> found = candidates(op, axis);
        std::erase_if(found, [&](const Use& use) { return !joins(op, axis, use); });
        if (!found.empty()) decision_.uses[index(op)][index(axis)] = cheapest(op, axis, found);
      }
    }
  }

  // Whether the operands can be cut by `use` and by what the axes before took.
  bool joins(OpId op, int axis, const Use& use) const {
    Uses uses = decision_.uses[index(op)];
    uses[index(axis)] = use;
    const auto operands = ops_.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Placement all = placement(ops_, op, i, uses, mesh_.axis_count());
      if (!fits(tensors_.view(operands[i].tensor), all, mesh_)) return false;
    }
    return true;
  }

  const Graph& graph_;
  const OpTable& ops_;
  const TensorTable& tensors_;
  const Mesh& mesh_;
  const MeshLinks& links_;
  Decision decision_;
  std::priority_queue<Item> queue_;
  std::vector<std::uint8_t> queued_;  // by operator and axis: which turns and directions wait
};

}  // namespace

Decision propagate(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                   const MeshLinks& links, const std::vector<Given>& given) {
  return Propagation(graph, ops, tensors, mesh, links).run(given);
}

}  // namespace millrace::shard
