// Halves the interval of the slowest stage's time; each question is a dynamic program from the last stage to the first.
#include "partitioners/common/piper/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "partitioners/common/piper/recompute_choice.h"
#include "partitioners/common/piper/stage_costs.h"
#include "partitioners/common/topological_order.h"
#include "plan/published.h"

namespace millrace::partitioners {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostPrefixesOfPiper = 1500;
constexpr std::size_t kFewestOfPiper = 24;
constexpr std::size_t kMostOnOrderOfPiper = 400;
constexpr double kStep = 1e-12;  // relative: two values nearer than this are one
constexpr double kMostGrowth = 1e6;
constexpr double kCoarse = 0.02;  // relative: from here on it is asked whether the best known plan is the best

/// Later stages with `replicas` and `devices` in all; the stage in front of them is (prefix, next's prefix].
struct Tail {
  std::size_t prefix = 0;
  std::int64_t replicas = 0;
  std::int64_t devices = 0;
  int next = -1;           // the tail that it extends
  std::size_t degree = 0;  // of its first stage
  std::int64_t stage_replicas = 0;
  double seconds = 0;
};

class TailSearch {
 public:
  TailSearch(const plan::PiperQuestion& question, const Prefixes& prefixes, Clock::time_point deadline)
      : question_(question),
        prefixes_(prefixes),
        costs_(question, prefixes),
        recompute_(costs_, prefixes, question.memory_bytes),
        deadline_(deadline) {
    for (std::int64_t d = 1; d <= question.most_replicas(); ++d) {
      if (question.batch % d == 0) replicas_.push_back(d);
    }
  }

  /// Stages of a plan whose slowest is at most `limit`, first to last; none: there is no such plan, or it is late().
  std::optional<std::vector<Tail>> within(double limit) {
    tails_.clear();
    at_.assign(prefixes_.size(), {});
    limit_ = limit;
    tails_.push_back({.prefix = prefixes_.size() - 1});
    at_.back().push_back(0);
    for (std::size_t to = prefixes_.size(); to-- > 1;) {
      keep_best(at_[to]);
      if (at_[to].empty()) continue;
      if (Clock::now() > deadline_) {
        late_ = true;
        return std::nullopt;
      }
      for (std::size_t from = to; from-- > 0;) {
        if (prefixes_.within(from, to)) extend(from, to);
      }
    }
    keep_best(at_[0]);
    if (at_[0].empty()) return std::nullopt;
    std::vector<Tail> stages;
    for (int tail = at_[0].front(); tails_[static_cast<std::size_t>(tail)].next >= 0;) {
      stages.push_back(tails_[static_cast<std::size_t>(tail)]);
      tail = stages.back().next;
    }
    return stages;
  }

  bool late() const { return late_; }
  bool exact() const { return costs_.exact() && recompute_.exact(); }
  double least_work() const { return costs_.least_work(prefixes_.size() - 1); }

  PiperStage stage(const Tail& tail) {
    const std::size_t to = tails_[static_cast<std::size_t>(tail.next)].prefix;
    PiperStage stage{.ops = {},
                     .tensor_parallel = costs_.degrees()[tail.degree],
                     .replicas = static_cast<int>(tail.stage_replicas),
                     .recompute = {}};
    const std::vector<PiperChoice>& choices = costs_.choices(tail.degree);
    const std::vector<OpId> others =
        recompute_.others(tail.degree, tail.prefix, to, plan::piper_live(tail.replicas, tail.stage_replicas),
                          costs_.segment(tail.degree, tail.prefix, to));
    for (OpId op = 0; op < static_cast<OpId>(choices.size()); ++op) {
      if (prefixes_.has(tail.prefix, op) || !prefixes_.has(to, op)) continue;
      stage.ops.push_back(op);
      const bool other = std::binary_search(others.begin(), others.end(), op);
      if (other != choices[static_cast<std::size_t>(op)].faster_is_recompute) stage.recompute.push_back(op);
    }
    return stage;
  }

 private:
  // Fewer replicas (less memory in front) and fewer devices are both better; the rest is dropped.
  void keep_best(std::vector<int>& tails) const {
    const auto tail = [&](int index) -> const Tail& { return tails_[static_cast<std::size_t>(index)]; };
    std::sort(tails.begin(), tails.end(), [&](int a, int b) {
      return std::tuple(tail(a).replicas, tail(a).devices, a) < std::tuple(tail(b).replicas, tail(b).devices, b);
    });
    std::vector<int> kept;
    for (const int index : tails) {
      if (kept.empty() || tail(index).devices < tail(kept.back()).devices) kept.push_back(index);
    }
    tails = std::move(kept);
  }

  // Devices that the operators of a prefix need.
  std::int64_t devices_for(std::size_t prefix) const {
    const double devices = std::ceil(costs_.least_work(prefix) / limit_ * (1 - 1e-9));
    return static_cast<std::int64_t>(std::min(devices, 1e9));
  }

  void extend(std::size_t from, std::size_t to) {
    const std::int64_t room = question_.devices - devices_for(from);
    const double work = costs_.least_work(to) - costs_.least_work(from);
    const auto fewest = tails_[static_cast<std::size_t>(at_[to].back())].devices;  // the last has the most replicas
    if (work * (1 - 1e-9) > limit_ * static_cast<double>(room - fewest)) return;
    for (std::size_t degree = 0; degree < costs_.degrees().size(); ++degree) {
      if (!costs_.offered(degree, from, to)) continue;
      const PiperSegment segment = costs_.segment(degree, from, to);
      const std::size_t first = first_within(segment);
      for (std::size_t i = 0; i < at_[to].size() && first < replicas_.size(); ++i) {
        extend(at_[to][i], from, to, degree, segment, first, room);
      }
    }
  }

  // The fewest replicas that are fast enough without recomputation.
  std::size_t first_within(const PiperSegment& segment) const {
    std::size_t first = 0;
    while (first < replicas_.size() &&
           plan::piper_stage(segment.seconds + segment.border_seconds, segment.parameter_bytes, replicas_[first],
                             question_) > limit_) {
      ++first;
    }
    return first;
  }

  // More replicas than needed are never better: they take devices, and memory of the stages in front.
  void extend(int next, std::size_t from, std::size_t to, std::size_t degree, const PiperSegment& segment,
              std::size_t first, std::int64_t room) {
    const Tail behind = tails_[static_cast<std::size_t>(next)];
    for (std::size_t r = first; r < replicas_.size(); ++r) {
      const std::int64_t d = replicas_[r];
      const std::int64_t devices = behind.devices + d * costs_.degrees()[degree];
      if (devices > room || behind.replicas + d > question_.most_replicas()) return;
      const double plain = segment.seconds + segment.border_seconds;
      const double time = plan::piper_stage(plain, segment.parameter_bytes, d, question_);
      if (time > limit_) return;
      const double allowed = (limit_ - time) * static_cast<double>(d);
      const double extra =
          recompute_.extra_seconds(degree, from, to, plan::piper_live(behind.replicas + d, d), segment, allowed);
      if (extra > allowed || extra == kNever) continue;
      at_[from].push_back(static_cast<int>(tails_.size()));
      tails_.push_back({.prefix = from,
                        .replicas = behind.replicas + d,
                        .devices = devices,
                        .next = next,
                        .degree = degree,
                        .stage_replicas = d,
                        .seconds = plan::piper_stage(plain + extra, segment.parameter_bytes, d, question_)});
      return;
    }
  }

  const plan::PiperQuestion& question_;
  const Prefixes& prefixes_;
  PiperStageCosts costs_;
  PiperRecompute recompute_;
  Clock::time_point deadline_;
  std::vector<std::int64_t> replicas_;  // divisors of the batch
  double limit_ = 0;
  std::vector<Tail> tails_;
  std::vector<std::vector<int>> at_;  // by prefix: tails that begin there
  bool late_ = false;
};

// Dag of the operators by the file's own edges.
ItemGraph item_graph(const TensorParallelModel& model) {
  ItemGraph readers(model.ops.size());
  for (const TensorParallelModel::Edge& edge : model.edges) {
    readers[static_cast<std::size_t>(edge.from)].push_back(edge.to);
  }
  return readers;
}

Prefixes order_prefixes(const plan::Problem& problem, std::size_t most) {
  const Order order = topological_order(*problem.graph, TieBreak::depth_first);
  std::vector<std::size_t> cuts;
  most = std::min(most, order.size());
  for (std::size_t i = 0; i <= most; ++i) cuts.push_back(i * order.size() / most);
  return Prefixes::of_order(order, cuts);
}

Prefixes prefixes_of(const plan::Problem& problem, const ItemGraph& readers, Clock::time_point deadline) {
  if (auto all = Prefixes::all(readers, kMostPrefixesOfPiper, deadline)) return std::move(*all);
  return order_prefixes(problem, kMostOnOrderOfPiper);
}

double slowest(const std::vector<Tail>& stages) {
  double seconds = 0;
  for (const Tail& stage : stages) seconds = std::max(seconds, stage.seconds);
  return seconds;
}

void take(PiperPlan& plan, TailSearch& search, const std::vector<Tail>& stages) {
  plan.value = slowest(stages);
  plan.stages.clear();
  for (const Tail& tail : stages) plan.stages.push_back(search.stage(tail));
}

// A plan of few places to cut, so that there is one whatever the deadline.
PiperPlan first_plan(const plan::Problem& problem, const plan::PiperQuestion& question) {
  PiperPlan plan{.stages = {}, .value = kNever, .bound = plan::bound_time_per_sample(problem)};
  const Prefixes prefixes = order_prefixes(problem, kFewestOfPiper);
  TailSearch search(question, prefixes, Clock::time_point::max());
  if (const auto stages = search.within(kNever)) take(plan, search, *stages);
  return plan;
}

}  // namespace

PiperPlan piper_search(const plan::Problem& problem, Clock::time_point deadline) {
  const plan::PiperQuestion question = plan::piper_question(problem);
  const Prefixes prefixes = prefixes_of(problem, item_graph(*question.model), deadline);
  TailSearch search(question, prefixes, deadline);
  PiperPlan plan{.stages = {}, .value = kNever, .bound = plan::bound_time_per_sample(problem)};
  double low = plan.bound;
  double growth = 1.25;  // while nothing is known from above: questions that have no answer are cheap
  bool near = false;     // the last question was whether the best known plan is the best
  for (double limit = low > 0 ? low * growth : kNever; !search.late();) {
    const auto stages = search.within(limit);
    if (search.late()) break;
    if (stages) {
      take(plan, search, *stages);
    } else {
      if (near || limit == kNever) break;
      low = limit;
    }
    if (plan.value == kNever) {
      growth *= growth;
      limit = growth < kMostGrowth && low > 0 ? low * growth : kNever;
      continue;
    }
    if (plan.value <= low * (1 + kStep)) break;
    near = plan.value <= low * (1 + kCoarse) && !(near && stages);
    limit = near ? plan.value * (1 - kStep) : std::sqrt(std::max(low, plan.value * 1e-6) * plan.value);
  }
  if (plan.stages.empty() && search.late()) plan = first_plan(problem, question);
  plan.late = search.late();
  plan.proven = !plan.stages.empty() && !plan.late && search.exact() && prefixes.complete();
  if (prefixes.complete() && search.exact()) plan.bound = std::max(plan.bound, plan.proven ? plan.value : low);
  return plan;
}

}  // namespace millrace::partitioners
