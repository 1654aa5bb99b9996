// Annealing from the best chain, on the model without its order; then runs of a topological order as stages.
#include "partitioners/common/max_load/interleaved.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "partitioners/common/max_load/annealing.h"
#include "partitioners/common/max_load/assignment.h"
#include "partitioners/common/max_load/candidate.h"
#include "partitioners/common/max_load/item_bound.h"
#include "partitioners/common/max_load/orders.h"
#include "partitioners/common/max_load/proof.h"
#include "partitioners/common/max_load/reduce.h"
#include "partitioners/common/max_load/stage_runs.h"
#include "plan/published.h"

namespace millrace::partitioners {
namespace {

using namespace max_load;

constexpr std::uint64_t kChainSteps = 2'000'000;  // for the best chain to start from
constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

// Devices numbered kind by kind.
std::vector<std::uint32_t> devices_of_chain(const Model& model, const Parts& chain) {
  std::vector<std::uint32_t> next(model.kinds.size(), 0);
  for (std::size_t kind = 1; kind < next.size(); ++kind) {
    next[kind] = next[kind - 1] + static_cast<std::uint32_t>(model.kinds[kind - 1].devices.size());
  }
  std::vector<std::uint32_t> device_of(model.size(), 0);
  for (const Part& part : chain) {
    for (const Item item : part.items) device_of[item] = next[part.kind];
    ++next[part.kind];
  }
  return device_of;
}

Model without_order(Model model) {
  model.before.assign(model.size(), {});
  model.after.assign(model.size(), {});
  return reduced(model, std::numeric_limits<double>::infinity());
}

double weight(const Model& model, OpId op) {
  return model.accelerator_s[static_cast<Item>(op)] + model.cpu_s[static_cast<Item>(op)];
}

// An item of several operators goes where its heaviest one is.
std::vector<std::uint32_t> folded(const Model& model, const Model& small, const std::vector<std::uint32_t>& device_of) {
  std::vector<std::uint32_t> result;
  for (const auto& members : small.members) {
    const auto heaviest = std::max_element(members.begin(), members.end(),
                                           [&](OpId a, OpId b) { return weight(model, a) < weight(model, b); });
    result.push_back(device_of[static_cast<Item>(*heaviest)]);
  }
  return result;
}

// Operators that no item has cost nothing anywhere: they go with one that they read.
std::vector<std::uint32_t> unfolded(const Model& model, const Model& small,
                                    const std::vector<std::uint32_t>& device_of) {
  std::vector<std::uint32_t> result(model.size(), kNowhere);
  for (Item item = 0; item < small.size(); ++item) {
    for (const OpId op : small.members[item]) result[static_cast<Item>(op)] = device_of[item];
  }
  for (Item op = 0; op < model.size(); ++op) {
    if (result[op] == kNowhere) result[op] = model.before[op].empty() ? 0 : result[model.before[op].back()];
  }
  return result;
}

// Where no chain fits: the largest operators first, each on the accelerator with the most room. Empty if one has none.
std::vector<std::uint32_t> packed(const Model& model) {
  std::vector<double> room;
  for (const DeviceKind& kind : model.kinds) room.insert(room.end(), kind.devices.size(), kind.memory);
  std::vector<Item> items(model.size());
  std::iota(items.begin(), items.end(), Item{0});
  std::stable_sort(items.begin(), items.end(), [&](Item a, Item b) { return model.bytes[a] > model.bytes[b]; });
  std::vector<std::uint32_t> device_of(model.size());
  for (const Item item : items) {
    const auto most = std::max_element(room.begin(), room.end());
    if (*most < model.bytes[item] || !model.on_accelerator(item)) return {};
    *most -= model.bytes[item];
    device_of[item] = static_cast<std::uint32_t>(most - room.begin());
  }
  return device_of;
}

struct Split {
  std::vector<std::uint32_t> device_of;
  double load = 0;
  bool late = false;
};

// `start` itself where the annealing finds nothing below it.
Split searched(const Model& model, std::vector<std::uint32_t> start, const Annealing& how) {
  const double load = Assignment(model, start).max_load();
  Split split{std::move(start), load, false};
  const Model small = without_order(model);
  if (Assignment::too_large(small)) return split;
  const Annealed found = annealed(small, folded(model, small, split.device_of), how);
  std::vector<std::uint32_t> device_of = unfolded(model, small, found.device_of);
  const double reached = Assignment(model, device_of).max_load();
  if (reached < split.load) split = {std::move(device_of), reached, false};
  split.late = found.late;
  return split;
}

// The best chain that is found with little effort, else any split that fits; empty if there is none.
std::vector<std::uint32_t> start_of(const Model& model, const std::vector<NamedOrder>& orders,
                                    std::chrono::steady_clock::time_point deadline) {
  const LinearBest linear = best_of_orders(model, orders, deadline);
  const Proof proof = prove(model, linear.chain, 0, {.deadline = deadline, .steps = kChainSteps});
  return proof.chain.empty() ? packed(model) : devices_of_chain(model, proof.chain);
}

}  // namespace

plan::PlanSet max_load_interleaved(const plan::Problem& problem, std::int64_t rounds,
                                   std::chrono::steady_clock::time_point deadline, plan::Evaluator& evaluate) {
  plan::PlanSet plans;
  if (!allowed_shape(problem, plans)) return plans;
  const Model model = make_model(problem);
  const std::vector<NamedOrder> orders = all_orders(model, *problem.graph);
  std::vector<std::uint32_t> start = start_of(model, orders, deadline);
  if (start.empty()) {
    // Nothing fits: the plan without limits says how much is missing.
    const LinearBest free = best_of_orders(without_limits(model), orders, deadline);
    if (free.chain.empty()) {
      refuse_all(model, free.late, plans);
    } else {
      plans.add(judged(problem, on_devices(model, free.chain), {.partitioner = "interleaved"}, evaluate));
    }
    return plans;
  }
  const double bound =
      std::max(plan::bound_max_load(problem), item_bound(model, Assignment(model, start).max_load(), deadline));
  const Split split = searched(model, std::move(start), {problem.seed, rounds, bound, deadline});
  plans.add(judged(problem, stage_runs(model, split.device_of),
                   {.partitioner = "interleaved",
                    .order = "annealing",
                    .bound = bound,
                    .bound_source = "minimum cut around one operator",
                    .late = split.late},
                   evaluate));
  return plans;
}

}  // namespace millrace::partitioners
