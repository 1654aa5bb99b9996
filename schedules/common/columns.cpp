// Fills in what the costs leave open and refuses stages that share only a part of their devices.
#include "schedules/common/columns.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::schedules {
namespace {

StageCost cost_of(const StageCosts& costs, std::size_t s) {
  StageCost cost;
  if (!costs.forward.empty()) cost.forward = costs.forward.at(s).value();
  const double both = costs.backward.empty() ? 2 * cost.forward : costs.backward.at(s).value();
  cost.backward_weight = costs.backward_weight.empty() ? both / 2 : costs.backward_weight.at(s).value();
  cost.backward_input = both - cost.backward_weight;
  if (!costs.hop.empty()) cost.hop = costs.hop.at(s).value();
  if (!costs.activations.empty()) cost.activations = static_cast<double>(costs.activations.at(s).value());
  cost.kept_for_weights =
      costs.kept_for_weights.empty() ? cost.activations : static_cast<double>(costs.kept_for_weights.at(s).value());
  return cost;
}

}  // namespace

Columns make_columns(const Plan& plan, const StageCosts& costs, std::string_view schedule) {
  Columns result;
  std::map<std::vector<int>, std::int32_t> known;
  std::map<int, std::int32_t> column_of_device;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const Pipeline& pipeline = plan.pipelines[p];
    for (const Stage& stage : pipeline.stages) {
      const auto flat = static_cast<std::int32_t>(result.column_of.size());
      const auto [place, is_new] = known.try_emplace(stage.devices, static_cast<std::int32_t>(result.columns.size()));
      if (is_new) {
        Column column;
        column.limit = std::numeric_limits<double>::infinity();
        for (const int device : stage.devices) {
          if (!column_of_device.try_emplace(device, place->second).second) {
            throw InvalidInput(
                fmt::format("schedule {}: stages that share a device share all of their devices; device "
                            "{} is in two different lists",
                            schedule, device));
          }
          if (costs.limit.empty()) continue;
          const Bytes limit = costs.limit.at(static_cast<std::size_t>(device));
          column.limit = std::min(column.limit, static_cast<double>(limit.value()));
        }
        result.columns.push_back(std::move(column));
      }
      result.columns[static_cast<std::size_t>(place->second)].stages.push_back(flat);
      result.column_of.push_back(place->second);
      result.pipeline_of.push_back(static_cast<std::int32_t>(p));
      result.micro_batches.push_back(pipeline.micro_batches);
      result.costs.push_back(cost_of(costs, static_cast<std::size_t>(flat)));
    }
  }
  return result;
}

}  // namespace millrace::schedules
