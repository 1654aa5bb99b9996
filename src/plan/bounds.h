// Proven bounds on what any plan of a problem can reach, and what proves them (METHODS 6, last sentences of `exact`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/problem.h"

namespace millrace::plan {

/// Whose value is bounded.
enum class Judge : std::uint8_t {
  closed_form,  ///< plan/closed_form.h with counted bytes (plan::AnalyticBytes)
  measured      ///< a simulation, a run, or bytes that a device reports
};

struct Bound {
  double value = 0;      ///< of the objective, in its unit
  std::string source{};  ///< "work / speed", "largest operator", "pipeline fill", …
};

/// A value that no plan of the problem beats; none where nothing is known. Plans use every device, one stage a device,
/// and synchronous schedules; pipelines may differ in cuts, devices and shares. Rests on op_time(): time per row does
/// not grow with rows, and time does not fall (cost::CostModel).
///
/// throughput, with S the speeds of all devices and W the time of all rows of all operators on a device of speed 1:
/// - work / speed: W / S;
/// - largest operator: its rows in the largest pipeline, over the speeds of the devices that one stage can have when
///   every other stage has one;
/// - pipeline fill (closed forms of gpipe and 1f1b): Σc + (m−1) max c of p stages on devices of speeds Σ = S, each at
///   least s_min, in P pipelines, takes W / (S − P p (p−1)/(m+p−1) s_min);
/// - reduction of a replicated model, where one stage is asked for: all gradients are summed over all devices, after
///   the compute of all micro-batches (closed form) or of all but the last;
/// the largest of them, and the least over the numbers of pipelines and stages that the problem leaves open.
/// bottleneck: the first two, for each sample.
/// memory_efficiency: batch / bound on time / least peak memory, an upper bound. The peak is at least the mean over
///   devices of what must be held somewhere: weights, optimizer state, and (closed form) gradients and, without
///   recomputation, what backward reads of the micro-batches alive on a last stage.
/// communication: 2 × the smallest tensor for each sample and each stage after the first that a connected graph has,
///   and 2(n−1) times the parameters that n devices must at least own together.
/// The published planners' own objectives: published_bound().
///
/// O(operators × kinds of devices + devices²): tens of milliseconds at 100,000 operators and 1,024 devices.
std::optional<Bound> proven_bound(const Problem& problem, Judge judge = Judge::closed_form);

/// The bound of a plan of that value: where the value passes it by rounding alone, as sums in another order do, the
/// value.
double bound_at(Objective objective, double value, double bound);

/// How far `value` is from `bound`, as a fraction of the bound: (value − bound) / bound; for memory_efficiency, where
/// more is better, bound / value − 1. None where the quotient does not exist; 0 where both are 0, and where only
/// rounding is between them.
std::optional<double> optimality_gap(Objective objective, double value, double bound);

/// The value of proven_bound() alone.
std::optional<double> lower_bound(const Problem& problem);

}  // namespace millrace::plan
