// What searches on stage labels share: the loop over shapes, plans from divisions, memory margins, the time limit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "partitioners/common/fm/improve.h"
#include "partitioners/common/fm/starts.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"

namespace millrace::partitioners::fm {

/// One shape to be divided.
struct Task {
  const plan::Problem* problem = nullptr;
  Model model{};
  const OpEdges* successors = nullptr;
  const std::vector<Order>* orders = nullptr;  ///< the topological orders, depth-first first

  std::size_t size() const { return model.netlist->nodes(); }
};

/// A division and its value.
struct Division {
  StageOf stage_of;
  Machine::Value value{};
};

/// Improves a division by local search. O(operators) to start.
Division improved(const Task& task, const StageOf& stage_of, const Effort& effort, Deadline deadline);

struct Found {
  std::vector<Division> divisions;  ///< best first, one at least
  bool stopped = false;             ///< by the deadline
};
using Divide = std::function<Found(const Task&, Deadline)>;

/// Names and limits of a search.
struct SearchSettings {
  std::string partitioner;
  double lambda = 0;                   ///< Machine: weight of injected bytes
  Seconds time_limit{};                ///< of all shapes together
  plan::Exchange* exchange = nullptr;  ///< ranks that search in step; null: this one alone
};

/// One plan for each allowed shape: the best by the evaluator of the first few divisions. Shapes that time does not
/// reach are refused, once a plan fits (common/first_plan.h); where nothing fits, the plan nearest to its memory limits
/// is returned as infeasible.
plan::PlanSet search_shapes(const plan::Problem& problem, const SearchSettings& settings, plan::Evaluator& evaluate,
                            const Divide& divide);

/// Whether any of the ranks says so; all get the same answer. Alone: `mine`.
bool any_of_ranks(plan::Exchange* exchange, bool mine);

}  // namespace millrace::partitioners::fm
