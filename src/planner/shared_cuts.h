// Cuts that schedules have in common: partitioners know of a schedule its closed form, and what it keeps only where
// memory counts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::planner {

/// Whether a partitioner that cuts for the problem would cut alike for another schedule with one stage a device.
bool cut_alike(const plan::Problem& problem, const std::string& schedule);

/// What partitioners answered, for the next schedule that they cut alike.
class SharedCuts {
 public:
  /// What partitioner `number` answered to a problem that differs from this one by no more than such a schedule, as the
  /// answer to this one, with its plans judged by the evaluator of this one; none: nothing is known.
  std::optional<plan::PlanSet> find(const plan::Problem& problem, std::size_t number, plan::Evaluator& evaluate) const;

  /// \param took  to find the plans. \pre the problems of one object differ in schedule and micro-batches alone.
  void keep(const plan::Problem& problem, std::size_t number, plan::PlanSet plans, Seconds took);

 private:
  struct Known {
    plan::Problem problem;
    std::size_t number = 0;
    plan::PlanSet plans;
  };
  std::vector<Known> known_;
};

}  // namespace millrace::planner
