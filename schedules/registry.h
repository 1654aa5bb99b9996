// The schedules by name: what they are called, what they promise and the function that makes the order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/option.h"
#include "config/values.h"
#include "plan/plan.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::schedules {

/// What a schedule can do, as bits.
enum Capability : std::uint32_t {
  kSynchronous = 1U << 0,     ///< one weight version: gradients equal those of one rank
  kTakesWarmup = 1U << 1,     ///< follows Pipeline::warmup
  kSplitsBackward = 1U << 2,  ///< orders backward_input and backward_weight apart
  kFitsCosts = 1U << 3,       ///< its order depends on what the stages cost
  kPostValidates = 1U << 4,   ///< where gradients are clipped, the norm is checked after the updates
};

/// "synchronous", "takes_warmup", … : the names of the bits, as listings print them.
std::vector<std::string> capability_names(std::uint32_t capabilities);

/// The option by which a schedule that searches for its order follows that of another schedule instead.
inline constexpr const char* kFixedOrder = "order";

/// The option of every synchronous schedule that puts the last weight gradients off to the iteration's end
/// (program/deferred_weights.h).
inline constexpr const char* kDeferredWeights = "deferred_weights";

/// Where a schedule wants the stages of a pipeline of p lists of devices.
enum class Placement : std::uint8_t {
  one_stage,  ///< p stages, one on each
  in_turn,    ///< v · p stages, stage i on list i mod p
  vee,        ///< 2p stages, stages s and 2p − 1 − s on list s
  both_ways   ///< two pipelines of p stages: stage s of the second on the list of stage p − 1 − s of the first
};

/// A pure function: the same plan gives the same order. \throws InvalidInput  naming the rule that the plan breaks.
using OrderFunction = ComputeOrder (*)(const Plan&, const StageDag&, const StageCosts&, const config::Values& options);

struct Entry {
  std::string name;
  std::string description;
  config::Options options;
  std::uint32_t capabilities = 0;
  OrderFunction order = nullptr;
  Placement placement = Placement::one_stage;
};

/// All schedules, in the order in which they are listed.
const std::vector<Entry>& registry();

/// Adds a row from outside the tree (planner/plugin.h). \throws InvalidInput  when the name is there already.
void add(Entry entry);

/// \throws InvalidInput  with the nearest and all valid names.
const Entry& by_name(std::string_view name);

/// The entry's defaults with what a plan gives for them (Plan::schedule_options).
/// \throws InvalidInput  an option that the schedule does not have, or a value that it does not take.
config::Values option_values(const Entry& entry, const std::map<std::string, std::string>& written);

/// The order of the plan's own schedule with the plan's options.
ComputeOrder compute_order(const Plan& plan, const StageDag& dag, const StageCosts& costs = {});

}  // namespace millrace::schedules
