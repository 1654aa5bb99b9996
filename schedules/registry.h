// The schedules by name: what they are called, what they promise and the function that makes the order.
#pragma once

#include <cstdint>
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
};

/// "synchronous", "takes_warmup", … : the names of the bits, as listings print them.
std::vector<std::string> capability_names(std::uint32_t capabilities);

/// A pure function: the same plan gives the same order. \throws InvalidInput  naming the rule that the plan breaks.
using OrderFunction = ComputeOrder (*)(const Plan&, const StageDag&, const StageCosts&, const config::Values& options);

struct Entry {
  std::string name;
  std::string description;
  config::Options options;
  std::uint32_t capabilities = 0;
  OrderFunction order = nullptr;
};

/// All schedules, in the order in which they are listed.
const std::vector<Entry>& registry();

/// Adds a row from outside the tree (planner/plugin.h). \throws InvalidInput  when the name is there already.
void add(Entry entry);

/// \throws InvalidInput  with the nearest and all valid names.
const Entry& by_name(std::string_view name);

/// The order of the plan's own schedule with its default options.
ComputeOrder compute_order(const Plan& plan, const StageDag& dag, const StageCosts& costs = {});

}  // namespace millrace::schedules
