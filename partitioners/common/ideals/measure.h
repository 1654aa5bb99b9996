// What a partial plan has come to, and what any plan that starts with it must at least cost (METHODS 2 and 5).
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/closed_form.h"
#include "plan/problem.h"

namespace millrace::partitioners::ideals {

/// Of the stages so far, in one kind of pipeline.
struct Figures {
  double sum = 0;               ///< s: of the stages
  double slowest = 0;           ///< s: stage; its forward where the schedule counts the slowest passes apart
  double slowest_backward = 0;  ///< s: only there
  double exposed = 0;           ///< s: reduction that outlasts the backwards of the stages before it
  double less_backward = 0;     ///< s: minus the sum of backwards, which later reductions have to hide in

  /// Makes each figure the smaller of the two.
  void lower_to(const Figures& other) {
    sum = std::min(sum, other.sum);
    slowest = std::min(slowest, other.slowest);
    slowest_backward = std::min(slowest_backward, other.slowest_backward);
    exposed = std::min(exposed, other.exposed);
    less_backward = std::min(less_backward, other.less_backward);
  }
};

/// Values are seconds: of an iteration, or of the slowest stage for the objective bottleneck.
class Measure {
 public:
  /// \pre the objective is throughput or bottleneck, the schedule's closed form that of gpipe or of 1f1b.
  Measure(const plan::Problem& problem, bool reduces)
      : steady_(problem.objective == plan::Objective::bottleneck),
        reduces_(reduces),
        splits_(plan::schedule_traits(problem.schedule).splits_bottleneck),
        more_(static_cast<double>(problem.micro_batches - 1)) {}

  /// Adds a stage; `reduction` is that of its gradients.
  void add(Figures& to, double forward, double backward, double reduction) const {
    if (steady_) {
      to.slowest = std::max(to.slowest, forward + backward);
      return;
    }
    to.sum += forward + backward;
    to.slowest = std::max(to.slowest, splits_ ? forward : forward + backward);
    if (splits_) to.slowest_backward = std::max(to.slowest_backward, backward);
    if (!reduces_) return;
    if (reduction > 0) to.exposed = std::max(to.exposed, reduction + to.less_backward);
    to.less_backward -= backward;
  }

  /// Value of a plan whose further stages take at least `rest` seconds together, the slowest of them `rest` or more.
  double at_least(const Figures& of, double rest) const {
    if (steady_) return std::max(of.slowest, rest);
    return of.sum + rest + more_ * std::max(of.slowest + of.slowest_backward, rest) + of.exposed;
  }

  /// The same with one more stage of at least `seconds` before those.
  double at_least_with(const Figures& of, double seconds, double rest) const {
    return steady_ ? std::max({of.slowest, seconds, rest})
                   : of.sum + seconds + rest + of.exposed +
                         more_ * std::max({of.slowest + of.slowest_backward, seconds, rest});
  }

  /// Whether every plan that builds on `a` is at least as good as with `b` in its place, up to `slack`. The slowest of
  /// the stages to come takes at least `rest`, and none of their reductions more than `reduction`: below the one and
  /// beyond the other, figures make no difference. What is worse in one figure may be made good by another.
  bool no_worse(const Figures& a, const Figures& b, double rest, double reduction, double slack) const {
    if (steady_) return std::max(a.slowest, rest) <= std::max(b.slowest, rest) + slack;
    double slower = 0;
    if (splits_) {
      slower = std::max(0.0, a.slowest - b.slowest) + std::max(0.0, a.slowest_backward - b.slowest_backward);
    } else {
      slower = std::max(0.0, std::max(a.slowest, rest) - std::max(b.slowest, rest));
    }
    const double less_room = std::max(a.less_backward, -reduction) - std::max(b.less_backward, -reduction);
    return a.sum - b.sum + more_ * slower + std::max(a.exposed - b.exposed, less_room) <= slack;
  }

  /// Seconds that one more stage can take while the value stays below `limit`.
  double room(const Figures& of, double limit) const { return steady_ ? limit : (limit - of.sum) / (more_ + 1); }

 private:
  bool steady_;
  bool reduces_;
  bool splits_;
  double more_;  // micro-batches after the first
};

}  // namespace millrace::partitioners::ideals
