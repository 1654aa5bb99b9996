// Asks the schedule for the order of a chain of stages, and keeps what it refuses.
#include "planner/schedule_rules.h"

#include <algorithm>

#include "base/errors.h"
#include "config/emit.h"
#include "schedules/registry.h"

namespace millrace::planner {
namespace {

// What a search can do without: rules and moves beside the most promising ones.
const std::map<std::string, std::string>& quick_options() {
  static const std::map<std::string, std::string> quick{{"moves", "0"}, {"rules", "2"}};
  return quick;
}

bool has_option(const schedules::Entry& entry, const std::string& name) {
  return std::any_of(entry.options.begin(), entry.options.end(),
                     [&](const config::Option& option) { return option.name == name; });
}

StageDag chain(const Plan& plan) {
  StageDag dag;
  std::int32_t flat = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    const auto stages = static_cast<std::int32_t>(pipeline.stages.size());
    for (std::int32_t s = 0; s < stages; ++s, ++flat) {
      dag.successors.emplace_back(s + 1 < stages ? std::vector{flat + 1} : std::vector<std::int32_t>{});
      dag.predecessors.emplace_back(s > 0 ? std::vector{flat - 1} : std::vector<std::int32_t>{});
      dag.depth_from_end.push_back(stages - 1 - s);
    }
  }
  return dag;
}

}  // namespace

std::string broken_rule(const Plan& plan) {
  const schedules::Entry& entry = schedules::by_name(plan.schedule);
  const bool fits_costs = has_option(entry, "moves");
  // A synchronous schedule with one stage a device takes every plan that a partitioner makes.
  const bool takes_all =
      entry.placement == schedules::Placement::one_stage && (entry.capabilities & schedules::kSynchronous) != 0;
  const bool warmed = std::any_of(plan.pipelines.begin(), plan.pipelines.end(),
                                  [](const Pipeline& pipeline) { return !pipeline.warmup.empty(); });
  if ((fits_costs || takes_all) && !warmed) return "";
  try {
    schedules::compute_order(plan, chain(plan));
  } catch (const InvalidInput& refusal) {
    return refusal.what();
  }
  return "";
}

Plan with_quick_order(const Plan& plan) {
  const schedules::Entry& entry = schedules::by_name(plan.schedule);
  Plan quick = plan;
  for (const auto& [name, value] : quick_options()) {
    if (has_option(entry, name)) quick.schedule_options.try_emplace(name, value);
  }
  return quick;
}

void forget_quick_order(Plan& plan, const std::map<std::string, std::string>& given) {
  for (const auto& [name, value] : quick_options()) {
    if (!given.contains(name)) plan.schedule_options.erase(name);
  }
}

std::vector<std::pair<std::string, Plan>> with_fixed_orders(const Plan& plan) {
  std::vector<std::pair<std::string, Plan>> all;
  const schedules::Entry& entry = schedules::by_name(plan.schedule);
  const auto option = std::find_if(entry.options.begin(), entry.options.end(),
                                   [](const config::Option& one) { return one.name == schedules::kFixedOrder; });
  if (option == entry.options.end() || plan.schedule_options.contains(option->name)) return all;
  for (const std::string& word : std::get<config::OneOf>(option->type).words) {
    if (word == option->standard) continue;
    all.emplace_back(word, plan);
    all.back().second.schedule_options[option->name] = word;
  }
  return all;
}

std::int64_t deferred_weights(const Plan& plan) {
  const auto given = plan.schedule_options.find(schedules::kDeferredWeights);
  return given == plan.schedule_options.end() ? 0 : std::stoll(given->second);
}

std::vector<std::pair<std::string, Plan>> with_deferred_weights(const Plan& plan,
                                                                const std::vector<std::int64_t>& counts) {
  std::vector<std::pair<std::string, Plan>> all;
  if (!has_option(schedules::by_name(plan.schedule), schedules::kDeferredWeights)) return all;
  std::int64_t most = 0;
  for (const Pipeline& pipeline : plan.pipelines) most = std::max(most, pipeline.micro_batches);
  for (const std::int64_t count : counts) {
    if (count == deferred_weights(plan) || count > most) continue;
    all.emplace_back(std::to_string(count), plan);
    all.back().second.schedule_options[schedules::kDeferredWeights] = std::to_string(count);
    if (count == 0) all.back().second.schedule_options.erase(schedules::kDeferredWeights);
  }
  return all;
}

std::map<std::string, std::string> written_options(const std::string& schedule, const config::Values& options) {
  const config::Values standard = config::defaults(schedules::by_name(schedule).options);
  std::map<std::string, std::string> written;
  for (const auto& [name, value] : options.all()) {
    if (standard.all().at(name) != value) written[name] = config::to_node(value).text;
  }
  return written;
}

}  // namespace millrace::planner
