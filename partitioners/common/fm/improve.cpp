// A heap of moves by gain; what grows stale is priced again when it comes up, what may have got better when its stage
// changes.
#include "partitioners/common/fm/improve.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "partitioners/common/fm/boundary.h"

namespace millrace::partitioners::fm {
namespace {

constexpr std::size_t kSample = 12;      // nodes of a border that are priced again when its stage changes
constexpr std::size_t kSwapSample = 16;  // nodes on either side that are tried in pairs
constexpr std::uint32_t kStepsPerClock = 32;

struct Move {
  double gain = 0;  // of the guide
  Node node = -1;
  std::int32_t to = 0;
  std::uint32_t stamp = 0;    // of the node: an older offer is void
  std::uint32_t version = 0;  // of the division for which the gain is exact

  // The heap's top: the largest gain, then the lowest number.
  bool operator<(const Move& other) const { return gain != other.gain ? gain < other.gain : node > other.node; }
};

class Search {
 public:
  Search(Labels& labels, const Effort& effort, Deadline deadline)
      : labels_(labels),
        boundary_(labels),
        effort_(effort),
        deadline_(deadline),
        value_(labels.value()),
        locked_(labels.model().netlist->nodes(), 0),
        stamp_(locked_.size(), 0) {}

  void run() {
    for (int i = 0; i < effort_.passes && !late(); ++i) {
      if (!pass() && !shift() && !swap()) return;
    }
  }

 private:
  bool late() const { return std::chrono::steady_clock::now() >= deadline_; }

  // The clock is looked at now and then.
  bool late_now() { return ++steps_ % kStepsPerClock == 0 && late(); }

  void go(Node node, int to) {
    const int from = labels_.stage(node);
    labels_.move(node, to);
    boundary_.moved(node, from);
    ++version_;
  }

  double gain(Node node, int to) {
    const int from = labels_.stage(node);
    labels_.move(node, to);
    const double gain = value_.guide - labels_.value().guide;
    labels_.move(node, from);
    return gain;
  }

  // The best place for a node: next door, or as far as its neighbours let it.
  Move best_move(Node node) {
    Move best{-std::numeric_limits<double>::infinity(), -1, 0, 0, version_};
    const int from = labels_.stage(node);
    if (labels_.count(from) == 1) return best;
    const auto [first, last] = labels_.range(node);
    int before = from;
    for (const int to : std::array{first, from - 1, from + 1, last}) {
      if (to < first || to > last || to == from || to == before) continue;
      before = to;
      const double value = gain(node, to);
      if (value > best.gain) best = {value, node, to, 0, version_};
    }
    return best;
  }

  void offer(Node node) {
    if (locked_[static_cast<std::size_t>(node)] == pass_) return;
    Move move = best_move(node);
    if (move.node < 0) return;
    move.stamp = ++stamp_[static_cast<std::size_t>(node)];
    heap_.push(move);
  }

  void offer_some(int stage, Direction direction) {
    if (stage < 0 || stage >= labels_.stages()) return;
    const auto nodes = boundary_.nodes(stage, direction);
    const std::size_t count = std::min(nodes.size(), kSample);
    for (std::size_t i = 0; i < count; ++i) offer(nodes[(turn_ + i) % nodes.size()]);
    turn_ += count;
  }

  // Stages that a move has made heavier give, those that it has made lighter take.
  void offer_around(Node node, int from, int to) {
    Boundary::for_neighbours(*labels_.model().netlist, node, [&](Node neighbour) { offer(neighbour); });
    offer_some(to, Direction::earlier);
    offer_some(to, Direction::later);
    offer_some(from - 1, Direction::later);
    offer_some(from + 1, Direction::earlier);
  }

  // Each node is moved once at most; the best prefix of the moves is kept.
  bool pass() {
    ++pass_;
    heap_ = {};
    for (int stage = 0; stage < labels_.stages(); ++stage) {
      for (const Direction direction : {Direction::earlier, Direction::later}) {
        // The sets change while moves are tried out only in labels, not in the boundary.
        for (const Node node : boundary_.nodes(stage, direction)) {
          if (late_now()) break;
          offer(node);
        }
      }
    }
    const Machine::Value start = value_;
    Machine::Value best = value_;
    std::vector<std::pair<Node, int>> done;  // and where it was
    std::size_t best_length = 0;
    const auto patience = static_cast<std::size_t>(effort_.patience);
    while (!heap_.empty() && done.size() - best_length <= patience) {
      const Move top = heap_.top();
      heap_.pop();
      if (top.stamp != stamp_[static_cast<std::size_t>(top.node)]) continue;
      if (locked_[static_cast<std::size_t>(top.node)] == pass_) continue;
      Move move = top.version == version_ ? top : best_move(top.node);
      if (move.node < 0) continue;
      if (!heap_.empty() && move.gain < heap_.top().gain && move.gain < top.gain) {
        move.stamp = ++stamp_[static_cast<std::size_t>(top.node)];
        heap_.push(move);
        continue;
      }
      const int from = labels_.stage(move.node);
      go(move.node, move.to);
      value_ = labels_.value();
      locked_[static_cast<std::size_t>(move.node)] = pass_;
      done.emplace_back(move.node, from);
      if (value_ < best) {
        best = value_;
        best_length = done.size();
      }
      if (late_now()) break;
      offer_around(move.node, from, move.to);
    }
    while (done.size() > best_length) {
      go(done.back().first, done.back().second);
      done.pop_back();
    }
    value_ = best;
    return best < start;
  }

  // Each cut is pushed on its own, either way: over the dear places behind which a cheap one may lie.
  bool shift() {
    const Machine::Value start = value_;
    for (int stage = 0; stage < labels_.stages() && !late(); ++stage) {
      shift(stage, Direction::later);
      shift(stage, Direction::earlier);
    }
    return value_ < start;
  }

  void shift(int stage, Direction direction) {
    const int to = direction == Direction::later ? stage + 1 : stage - 1;
    if (to < 0 || to >= labels_.stages()) return;
    Machine::Value best = value_;
    std::vector<Node> done;
    std::size_t best_length = 0;
    while (labels_.count(stage) > 1 && done.size() < best_length + static_cast<std::size_t>(effort_.patience)) {
      Move move{-std::numeric_limits<double>::infinity(), -1, 0, 0, 0};
      const auto nodes = boundary_.nodes(stage, direction);
      for (std::size_t i = 0; i < std::min(nodes.size(), kSample); ++i) {
        const double value = gain(nodes[i], to);
        if (value > move.gain) move = {value, nodes[i], to, 0, 0};
      }
      if (move.node < 0) break;
      go(move.node, to);
      value_ = labels_.value();
      done.push_back(move.node);
      if (value_ < best) {
        best = value_;
        best_length = done.size();
      }
    }
    for (; done.size() > best_length; done.pop_back()) go(done.back(), stage);
    value_ = best;
  }

  // Two nodes of the slowest stage and of one beside it change places.
  bool swap() {
    int slowest = 0;
    for (int s = 1; s < labels_.stages(); ++s) {
      if (labels_.time(s) > labels_.time(slowest)) slowest = s;
    }
    const Machine::Value start = value_;
    for (const int other : {slowest - 1, slowest + 1}) {
      if (other >= 0 && other < labels_.stages()) swap(slowest, other);
    }
    return value_ < start;
  }

  void swap(int stage, int other) {
    const Direction out = other > stage ? Direction::later : Direction::earlier;
    const Direction back = other > stage ? Direction::earlier : Direction::later;
    if (labels_.count(stage) == 1) return;
    const std::vector<Node> givers = some(stage, out);
    Machine::Value best = value_;
    std::pair<Node, Node> pair{-1, -1};
    for (const Node giver : givers) {
      go(giver, other);
      for (const Node taker : some(other, back)) {
        if (taker == giver || labels_.count(other) == 1) continue;
        labels_.move(taker, stage);
        const Machine::Value value = labels_.value();
        labels_.move(taker, other);
        if (!(value < best)) continue;
        best = value;
        pair = {giver, taker};
      }
      go(giver, stage);
    }
    if (pair.first < 0) return;
    go(pair.first, other);
    go(pair.second, stage);
    value_ = best;
  }

  std::vector<Node> some(int stage, Direction direction) const {
    const auto nodes = boundary_.nodes(stage, direction);
    return {nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), kSwapSample))};
  }

  Labels& labels_;
  Boundary boundary_;
  Effort effort_;
  Deadline deadline_;
  Machine::Value value_;
  std::priority_queue<Move> heap_;
  std::vector<int> locked_;  // the pass in which the node was moved
  std::vector<std::uint32_t> stamp_;
  int pass_ = 0;
  std::size_t turn_ = 0;
  std::uint32_t steps_ = 0;
  std::uint32_t version_ = 0;
};

}  // namespace

void improve(Labels& labels, const Effort& effort, Deadline deadline) {
  if (labels.stages() > 1) Search(labels, effort, deadline).run();
}

}  // namespace millrace::partitioners::fm
