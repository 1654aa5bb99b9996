// From parts to a judged plan: what the three searches for max_load do at their end.
#pragma once

#include <string>
#include <vector>

#include "partitioners/common/max_load/model.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners::max_load {

/// Operators on one device, in the order of stages; a device may come again.
struct DeviceStage {
  int device = 0;
  std::vector<OpId> ops;
};

/// Each part of a chain on a device of its own: those of its kind in turn. \pre items of `parts` are operators.
std::vector<DeviceStage> on_devices(const Model& model, const Parts& parts);

/// What a search can say of its plan.
struct Finding {
  std::string partitioner{};
  std::string order{};
  double bound = 0;  ///< proven; taken when it is above that of the evaluator
  std::string bound_source{};
  bool late = false;  ///< the deadline ended it
};

/// Evaluates the plan of these stages and says of it what was found.
plan::Candidate judged(const plan::Problem& problem, const std::vector<DeviceStage>& stages, const Finding& finding,
                       plan::Evaluator& evaluate);

/// Refuses what max_load does not know: several pipelines, a fixed number of stages. False then.
bool allowed_shape(const plan::Problem& problem, plan::PlanSet& plans);

/// The reason when there is no plan at all: no device for an operator, or no time.
void refuse_all(const Model& model, bool late, plan::PlanSet& plans);

/// The model without limits on memory: its best plan shows what would be needed where none fits.
Model without_limits(const Model& model);

}  // namespace millrace::partitioners::max_load
