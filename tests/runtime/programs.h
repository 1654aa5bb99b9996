// Programs of hand-made plans, for the parts of the runtime that need one but no other rank.
#pragma once

#include "program/lowering.h"
#include "program/stage_dag.h"
#include "schedules/registry.h"

namespace millrace::runtime::testing {

inline Program training_program(const Graph& graph, const Plan& plan, std::int64_t batch) {
  return lower(graph, plan, schedules::compute_order(plan, make_stage_dag(graph, plan)), batch);
}

}  // namespace millrace::runtime::testing
