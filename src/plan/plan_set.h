// What a partitioner answers: plans with their figures, and for each refused shape the reason from a closed list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/objective.h"

namespace millrace::plan {

enum class Refusal : std::uint8_t {
  more_stages_than_operators,
  more_stages_than_devices,
  pipelines_do_not_divide_devices,
  batch_too_small,  ///< fewer rows than pipelines × micro-batches
  not_offered,      ///< the partitioner does not make plans of that shape
  memory_exceeded,  ///< no cut that it looked at fits
  too_large,        ///< more states than its options allow
  time_limit        ///< stopped before it had a plan
};

/// "more stages than operators", …
std::string_view text(Refusal reason);

/// One shape that gave no plan.
struct Refused {
  std::string partitioner{};
  std::string schedule{};
  std::int64_t micro_batches = 0;
  int pipelines = 0;
  int stages = 0;  ///< 0: any number
  Refusal reason = Refusal::not_offered;
  std::string detail{};  ///< names and numbers; may be empty
};

class PlanSet {
 public:
  void add(Candidate candidate) { candidates_.push_back(std::move(candidate)); }
  void refuse(int pipelines, int stages, Refusal reason, std::string detail = {});

  std::vector<Candidate>& candidates() { return candidates_; }
  const std::vector<Candidate>& candidates() const { return candidates_; }
  std::vector<Refused>& refusals() { return refusals_; }
  const std::vector<Refused>& refusals() const { return refusals_; }

  /// Whether a candidate fits.
  bool feasible() const;
  /// The best by better(); an infeasible one only when none fits. \pre there are candidates.
  const Candidate& best(Objective objective) const;

 private:
  std::vector<Candidate> candidates_;
  std::vector<Refused> refusals_;
};

}  // namespace millrace::plan
