// Predicts a plan: closed forms now; the simulator answers the same question.
#pragma once

#include <memory>
#include <optional>

#include "plan/bounds.h"
#include "plan/problem.h"
#include "plan/report.h"

namespace millrace::plan {

/// Judges plans of one problem. An infeasible plan gets its figures too, with `feasible` false and the reason.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// \pre the plan is valid.
  virtual PlanReport evaluate(const Plan& plan) = 0;
};

/// Closed forms of METHODS 2 and 5: exact for gpipe without communication, an upper bound for 1f1b with uneven
/// stages. Gradient reduction overlaps the drain of the pipeline (METHODS 5, level 1); transfers count as exposed.
class ClosedFormEvaluator : public Evaluator {
 public:
  /// `problem` and what it points to must outlive it. `bytes`: where stage sizes come from; null: counted.
  /// \throws InvalidInput  when the problem's schedule has no closed form.
  explicit ClosedFormEvaluator(const Problem& problem, const StageBytes* bytes = nullptr);
  PlanReport evaluate(const Plan& plan) override;

 private:
  const std::optional<Bound>& bound();

  const Problem* problem_;
  std::unique_ptr<StageBytes> counted_;
  const StageBytes* bytes_;
  std::optional<std::optional<Bound>> bound_;  // asked for once: it is the problem's
};

}  // namespace millrace::plan
