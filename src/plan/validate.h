// Whether a plan can be run: every rule that it breaks, with a reason from a closed list and the names involved.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "plan/plan.h"

namespace millrace::plan {

enum class Fault : std::uint8_t {
  other_graph,       ///< made for a graph with another digest
  no_stages,         ///< no pipeline, or a pipeline without stages
  unknown_operator,  ///< an operator number that the graph does not have
  empty_stage,
  missing_operator,   ///< in no stage of a pipeline
  repeated_operator,  ///< in two stages of a pipeline, or twice in one
  not_convex,         ///< a path leaves a stage and comes back
  cyclic,             ///< stages that each need another's results first
  stage_order,        ///< could run, but a stage is listed before one whose results it reads
  device_count,       ///< devices that the job does not have, or that the plan leaves idle; none in a stage
  device_repeated,    ///< a device with two stages, where that is not allowed, or that share only some devices
  shares,             ///< not positive, not summing to 1, or not one for each replica
  micro_batches,      ///< below 1
  batch_too_small,    ///< a pipeline has fewer rows than micro-batches
  warmup              ///< not one number for each stage, or negative
};

/// "missing_operator", …
std::string_view name(Fault fault);

struct Violation {
  Fault fault = Fault::no_stages;
  std::string text;  ///< names pipeline, stage, operators and numbers
};

/// What a plan is held against, besides its graph. What is not given is not checked.
struct Limits {
  std::optional<int> devices{};         ///< of the job; the plan must use each exactly once
  std::optional<std::int64_t> batch{};  ///< rows of an iteration
  /// For objectives of published planners, whose plans are judged but not run: devices may be idle, and one may hold
  /// several stages.
  bool judged_only = false;
  /// For schedules that place several stages on a device: stages of one pipeline that share a device then share all of
  /// their devices, shares and tensor_parallel. Whether the placement is the schedule's is for the schedule to say.
  bool several_stages = false;
};

/// All violations, in order of pipelines and stages; empty: the plan is valid. Order of checks: a pipeline whose
/// cover is broken is not looked at for cycles. Linear in the graph for each different cut of a valid plan.
std::vector<Violation> validate(const Plan& plan, const Graph& graph, const Limits& limits = {});

/// \throws InvalidInput  listing all violations after `what` ("plan.yaml").
void require_valid(const Plan& plan, const Graph& graph, const Limits& limits, std::string_view what);

}  // namespace millrace::plan
