// For tests: searches for plans whose stages a schedule deals, and where the stages went.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/values.h"
#include "partitioners/registry.h"
#include "planner/search.h"
#include "tests/plan/table_cost.h"

namespace millrace::planner {

inline ScheduleChoice chosen(const std::string& name, int chunks = 0) {
  ScheduleChoice schedule = ScheduleChoice::of(name);
  if (chunks > 0) schedule.options.set("chunks", std::int64_t{chunks});
  return schedule;
}

/// Of one pipeline, one schedule and one number of micro-batches, unless the caller changes it.
inline Request dealt_request(const testing_support::Case& c, ScheduleChoice schedule, std::int64_t micro_batches,
                             const std::string& partitioner = "dp") {
  Request request;
  request.problem = c.problem;
  request.problem.pipelines = 1;
  request.partitioners = {{partitioner, config::defaults(partitioners::by_name(partitioner).options)}};
  request.schedules = {std::move(schedule)};
  request.micro_batches = {micro_batches};
  return request;
}

/// Devices of each stage of a pipeline.
inline std::vector<std::vector<int>> devices(const Plan& plan, std::size_t pipeline = 0) {
  std::vector<std::vector<int>> all;
  for (const Stage& stage : plan.pipelines.at(pipeline).stages) all.push_back(stage.devices);
  return all;
}

/// Operators of each stage.
inline std::vector<std::size_t> sizes(const Plan& plan) {
  std::vector<std::size_t> all;
  for (const Stage& stage : plan.pipelines.at(0).stages) all.push_back(stage.ops.size());
  return all;
}

}  // namespace millrace::planner
