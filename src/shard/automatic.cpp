// The dynamic program over the placements of live tensors.
#include "shard/automatic.h"

#include <algorithm>
#include <map>

#include "shard/costs.h"
#include "shard/index.h"

namespace millrace::shard {
namespace {

class Program {
 public:
  Program(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh, const MeshLinks& links,
          const cost::CostModel& cost, Decision decision, const ChoiceOptions& options)
      : graph_(graph),
        ops_(ops),
        tensors_(tensors),
        mesh_(mesh),
        cost_(cost),
        options_(options),
        link_(links.link(1U << options.axis)),
        devices_(mesh.axis_size(options.axis)),
        decision_(std::move(decision)) {
    shares_ = mesh.ratio(options.ratio);
    if (shares_.empty()) shares_.assign(index(devices_), 1.0);
    double total = 0;
    for (const double share : shares_) total += share;
    for (double& share : shares_) share /= total;
  }

  Choice run() {
    steps_.push_back({State{}});
    for (OpId op = 0; op < graph_.size(); ++op) add(op);
    return trace();
  }

 private:
  using Key = std::vector<std::pair<TensorId, Property>>;  // live tensors, ascending

  struct State {
    Key live{};
    double cost = 0;
    std::size_t before = 0;  // in the step before
    Use use{};
    std::vector<std::pair<TensorId, Property>> settled{};  // kept placements that this step decided
  };

  double bytes(TensorId tensor) const { return static_cast<double>(tensors_.view(tensor).bytes()); }

  // A tensor that several operators read is converted once, if at all: it may be kept in another placement than that
  // in which it is made. Tied parameters are such tensors too.
  bool shared(TensorId tensor) const { return graph_.consumers(tensor).size() > 1; }
  bool is_data(const Operand& operand) const {
    const Role role = graph_.tensor(operand.tensor).role;
    return role == Role::input || role == Role::label;
  }
  OpId last_reader(TensorId tensor) const { return graph_.consumers(tensor).back(); }

  bool fits_with(TensorId tensor, Property property) const {
    Placement all = decision_.placements[index(tensor)];
    all[index(options_.axis)] = property;
    return fits(tensors_.view(tensor), all, mesh_);
  }

  std::vector<Property> ways_to_keep(TensorId tensor) const {
    std::vector<Property> ways{kReplicated};
    for (int dim = 0; dim < static_cast<int>(tensors_.view(tensor).extents.size()); ++dim) {
      if (fits_with(tensor, split(dim, options_.ratio))) ways.push_back(split(dim, options_.ratio));
    }
    return ways;
  }

  std::vector<Use> uses(OpId op) const {
    std::vector<Use> legal;
    for (Use use : ops_.uses(op)) {
      if (use.kind == Use::Kind::letter) use.ratio = static_cast<std::int16_t>(options_.ratio);
      Uses all = decision_.uses[index(op)];
      all[index(options_.axis)] = use;
      bool fit = true;
      const auto operands = ops_.operands(op);
      for (std::size_t i = 0; fit && i < operands.size(); ++i) {
        fit = fits(tensors_.view(operands[i].tensor), placement(ops_, op, i, all, mesh_.axis_count()), mesh_);
      }
      if (fit) legal.push_back(use);
    }
    return legal;
  }

  // On the slowest device: its share of what is split, all of what is not.
  double compute(OpId op, const Use& use) const {
    double slowest = 0;
    for (int device = 0; device < mesh_.size(); ++device) {
      const double whole = cost_.op_time(op, tensors_.rows(), device).total().value();
      const double share =
          use.kind == Use::Kind::letter ? shares_[index(mesh_.coordinate(device, options_.axis))] : 1.0;
      slowest = std::max(slowest, whole * share);
    }
    return slowest;
  }

  // What the fullest device holds of a tensor, priced.
  double held(TensorId tensor, Property property, double copies) const {
    const double share = property.is_split() ? *std::max_element(shares_.begin(), shares_.end()) : 1.0;
    return options_.seconds_per_byte * copies * share * bytes(tensor);
  }

  double edge(const Operand& operand, Property kept, Property needed, const Use& use) const {
    const Edge one{kept, needed, operand.side == Side::output, has_gradient(graph_, operand), bytes(operand.tensor)};
    double seconds = edge_time(one, use, devices_, link_).value();
    // Gradients of parameters are reduced once an iteration.
    if (operand.side == Side::parameter) seconds /= static_cast<double>(options_.micro_batches);
    return seconds;
  }

  void add(OpId op) {
    const auto operands = ops_.operands(op);
    std::map<Key, State> next;
    const std::vector<State>& before = steps_.back();
    for (const Use& use : uses(op)) {
      const double own = compute(op, use);
      for (std::size_t at = 0; at < before.size(); ++at) {
        State state{.live = before[at].live, .cost = before[at].cost + own, .before = at, .use = use};
        branch(op, operands, 0, state, next);
      }
    }
    std::vector<State> states;
    for (auto& [key, state] : next) states.push_back(std::move(state));
    if (states.size() > options_.most_states) {
      exact_ = false;
      std::stable_sort(states.begin(), states.end(), [](const State& a, const State& b) { return a.cost < b.cost; });
      states.resize(options_.most_states);
    }
    steps_.push_back(std::move(states));
  }

  void branch(OpId op, std::span<const Operand> operands, std::size_t i, const State& state,
              std::map<Key, State>& next) const {
    if (i == operands.size()) return finish(op, state, next);
    const Operand& operand = operands[i];
    const Property needed = ops_.property(op, i, state.use);
    const auto go = [&](Property kept, bool settles, double price) {
      State after = state;
      after.cost += price + edge(operand, kept, needed, after.use);
      if (settles) after.settled.emplace_back(operand.tensor, kept);
      const bool lives = settles && (operand.side == Side::output || shared(operand.tensor));
      if (lives && !graph_.consumers(operand.tensor).empty()) insert(after.live, operand.tensor, kept);
      branch(op, operands, i + 1, after, next);
    };
    if (operand.side == Side::output) {
      const bool reused = shared(operand.tensor) || needed.is_partial();
      if (!reused) return go(needed, true, held(operand.tensor, needed, 1));
      go(needed, true, held(operand.tensor, needed, 1));
      for (const Property kept : ways_to_keep(operand.tensor)) {
        if (kept != needed) go(kept, true, held(operand.tensor, kept, 1));
      }
      return;
    }
    const auto live = std::find_if(state.live.begin(), state.live.end(),
                                   [&](const auto& entry) { return entry.first == operand.tensor; });
    if (live != state.live.end()) return go(live->second, false, 0);
    // Data is fed as it is needed. Parameters and buffers of one reader are kept as they are needed, terms as wholes.
    constexpr double kCopies = 4;  // weight, gradient, two moments
    if (is_data(operand) || !shared(operand.tensor)) {
      const Property kept = needed.is_partial() ? kReplicated : needed;
      return go(kept, true, is_data(operand) ? 0 : held(operand.tensor, kept, kCopies));
    }
    for (const Property kept : ways_to_keep(operand.tensor)) go(kept, true, held(operand.tensor, kept, kCopies));
  }

  static void insert(Key& live, TensorId tensor, Property property) {
    const std::pair<TensorId, Property> entry{tensor, property};
    live.insert(
        std::lower_bound(live.begin(), live.end(), tensor, [](const auto& a, TensorId b) { return a.first < b; }),
        entry);
  }

  void finish(OpId op, State state, std::map<Key, State>& next) const {
    std::erase_if(state.live, [&](const auto& entry) { return last_reader(entry.first) <= op; });
    const auto [place, fresh] = next.try_emplace(state.live, state);
    if (!fresh && state.cost < place->second.cost) place->second = std::move(state);
  }

  Choice trace() {
    Choice choice{.exact = exact_};
    const auto& last = steps_.back();
    auto best = static_cast<std::size_t>(
        std::min_element(last.begin(), last.end(), [](const State& a, const State& b) { return a.cost < b.cost; }) -
        last.begin());
    choice.time = Seconds(last[best].cost);
    const std::size_t axis = index(options_.axis);
    for (Placement& placement : decision_.placements) placement[axis] = kReplicated;
    for (auto op = static_cast<OpId>(graph_.size()); op-- > 0;) {
      const State& state = steps_[index(op) + 1][best];
      decision_.uses[index(op)][axis] = state.use;
      for (const auto& [tensor, kept] : state.settled) {
        decision_.placements[index(tensor)][axis] = kept;
        decision_.origins[index(tensor)][axis] = {Origin::Kind::chosen, op};
      }
      best = state.before;
    }
    choice.decision = std::move(decision_);
    return choice;
  }

  const Graph& graph_;
  const OpTable& ops_;
  const TensorTable& tensors_;
  const Mesh& mesh_;
  const cost::CostModel& cost_;
  const ChoiceOptions& options_;
  cluster::Link link_;
  int devices_;
  Decision decision_;
  std::vector<double> shares_;
  std::vector<std::vector<State>> steps_;  // after each operator
  bool exact_ = true;
};

}  // namespace

Choice choose(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
              const MeshLinks& links, const cost::CostModel& cost, Decision decision, const ChoiceOptions& options) {
  return Program(graph, ops, tensors, mesh, links, cost, std::move(decision), options).run();
}

}  // namespace millrace::shard
