// An event a time at which something may have become possible; a device that is free then chooses by the rule.
#include "schedules/common/list_schedule.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "base/limits.h"

namespace millrace::schedules {
namespace {

constexpr double kRounding = 1e-9;  // of a limit: sums of bytes are exact, the limit may be a fraction

constexpr std::int64_t kLooksPerAction = 50;

// Progress of one stage.
struct StageState {
  std::int64_t forwards = 0;  // micro-batches done or running; all go through in order
  std::int64_t inputs = 0;
  std::int64_t weights = 0;
  std::vector<double> forward_end;
  std::vector<double> input_end;
};

struct ColumnState {
  double free = 0;
  double bytes = 0;
  bool last_was_forward = false;
  std::int64_t warmup = 0;  // most forwards before the first backward
  bool warm = true;
};

// A choice: what, and when it could start at the earliest as far as is known.
struct Choice {
  std::int32_t stage = -1;
  double start = kNever;
};

class ListScheduler {
 public:
  ListScheduler(const Columns& columns, const StageDag& dag, const ListRule& rule)
      : columns_(columns),
        dag_(dag),
        rule_(rule),
        stages_(columns.column_of.size()),
        states_(columns.columns.size()),
        orders_(columns.columns.size()) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto m = static_cast<std::size_t>(columns.micro_batches[s]);
      stages_[s].forward_end.assign(m, kNever);
      stages_[s].input_end.assign(m, kNever);
      left_ += 3 * columns.micro_batches[s];
    }
    set_warmups();
  }

  std::optional<ColumnOrders> run() {
    for (std::size_t c = 0; c < states_.size(); ++c) events_.emplace(0.0, c);
    // Columns that wait for each other's memory look again and again, in vain.
    std::int64_t looks = kLooksPerAction * left_;
    while (!events_.empty() && left_ > 0 && --looks > 0) {
      const auto [time, column] = events_.top();
      events_.pop();
      if (states_[column].free <= time) decide(column, time);
    }
    if (left_ > 0) return std::nullopt;
    return std::move(orders_);
  }

 private:
  const StageCost& cost(std::int32_t s) const { return columns_.costs[static_cast<std::size_t>(s)]; }
  StageState& state(std::int32_t s) { return stages_[static_cast<std::size_t>(s)]; }
  std::int64_t count(std::int32_t s) const { return columns_.micro_batches[static_cast<std::size_t>(s)]; }
  std::int32_t column(std::int32_t s) const { return columns_.column_of[static_cast<std::size_t>(s)]; }
  double hop(std::int32_t producer, std::int32_t consumer) const {
    return column(producer) == column(consumer) ? 0 : cost(producer).hop;
  }

  // Forwards that fit into the way from a stage's first forward to the end and back.
  void set_warmups() {
    std::vector<double> back(stages_.size(), 0);  // longest way from the end of the forward to the gradient's arrival
    std::vector<std::size_t> by_depth(stages_.size());
    for (std::size_t s = 0; s < by_depth.size(); ++s) by_depth[s] = s;
    std::stable_sort(by_depth.begin(), by_depth.end(),
                     [&](std::size_t a, std::size_t b) { return dag_.depth_from_end[a] < dag_.depth_from_end[b]; });
    for (const std::size_t s : by_depth) {
      for (const std::int32_t next : dag_.successors[s]) {
        const double way = 2 * hop(static_cast<std::int32_t>(s), next) + cost(next).forward + cost(next).backward_input;
        back[s] = std::max(back[s], way + back[static_cast<std::size_t>(next)]);
      }
    }
    for (std::size_t c = 0; c < states_.size(); ++c) {
      const std::vector<std::int32_t>& held = columns_.columns[c].stages;
      states_[c].warmup = std::numeric_limits<std::int64_t>::max();
      if (held.size() > 1) continue;
      const auto s = static_cast<std::size_t>(held[0]);
      const double forward = columns_.costs[s].forward;
      const double fit = forward > 0 ? 1 + rule_.warmup * back[s] / forward + rule_.more_warmup : kNever;
      const auto least = std::int64_t{dag_.depth_from_end[s]} + 1;
      states_[c].warmup = static_cast<std::int64_t>(
          std::clamp(fit + kRounding, static_cast<double>(least), static_cast<double>(columns_.micro_batches[s]) + 1));
    }
  }

  // When the next forward of a stage can start: never, as long as what it waits for has not begun.
  double forward_ready(std::int32_t s) {
    const auto k = static_cast<std::size_t>(state(s).forwards);
    double ready = 0;
    for (const std::int32_t before : dag_.predecessors[static_cast<std::size_t>(s)]) {
      ready = std::max(ready, state(before).forward_end[k] + hop(before, s));
    }
    // Chunks of a device run a micro-batch in the order of their numbers.
    for (const std::int32_t chunk : columns_.columns[static_cast<std::size_t>(column(s))].stages) {
      if (chunk < s && same_pipeline(chunk, s)) ready = std::max(ready, state(chunk).forward_end[k]);
    }
    return ready;
  }

  bool same_pipeline(std::int32_t a, std::int32_t b) const {
    return columns_.pipeline_of[static_cast<std::size_t>(a)] == columns_.pipeline_of[static_cast<std::size_t>(b)];
  }

  double input_ready(std::int32_t s) {
    StageState& at = state(s);
    const auto k = static_cast<std::size_t>(at.inputs);
    double ready = at.forward_end[k];
    for (const std::int32_t next : dag_.successors[static_cast<std::size_t>(s)]) {
      ready = std::max(ready, state(next).input_end[k] + hop(s, next));
    }
    return ready;
  }

  // Whether the next forward leaves what the column's oldest micro-batch still needs to come to its end.
  bool fits(std::size_t c, std::int32_t s) {
    const Column& column = columns_.columns[c];
    double needed = states_[c].bytes + cost(s).activations;
    for (const std::int32_t chunk : column.stages) {
      if (chunk == s || !same_pipeline(chunk, s)) continue;
      const std::int64_t oldest = oldest_open(column, s);
      if (state(chunk).forwards <= oldest && state(s).forwards > oldest) needed += cost(chunk).activations;
      if (state(chunk).forwards <= oldest && state(s).forwards == oldest && chunk > s) {
        needed += cost(chunk).activations;
      }
    }
    return needed <= column.limit * (1 + kRounding);
  }

  std::int64_t oldest_open(const Column& column, std::int32_t s) {
    std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
    for (const std::int32_t chunk : column.stages) {
      if (same_pipeline(chunk, s)) oldest = std::min(oldest, state(chunk).weights);
    }
    return oldest;
  }

  // The best of a column's chunks for a forward and for an input gradient: the earliest start as far as is known, at or
  // before `time` the same, then the deeper stage.
  Choice best_forward(std::size_t c, double time, bool& blocked) {
    Choice best;
    blocked = false;
    const ColumnState& at = states_[c];
    for (const std::int32_t s : columns_.columns[c].stages) {
      if (state(s).forwards >= count(s)) continue;
      if (at.warm && state(s).forwards >= at.warmup) continue;
      const double ready = std::max(time, forward_ready(s));
      if (!fits(c, s)) {
        blocked = blocked || ready <= time;
        continue;
      }
      if (better(ready, best, rule_.deeper_forward)) best = {s, ready};
    }
    return best;
  }

  // Stages come in ascending order, so a later one is the deeper one.
  static bool better(double ready, const Choice& best, bool deeper) {
    return best.stage < 0 || ready < best.start || (deeper && ready == best.start);
  }

  Choice best_input(std::size_t c, double time) {
    Choice best;
    for (const std::int32_t s : columns_.columns[c].stages) {
      if (state(s).inputs >= state(s).forwards) continue;
      const double ready = std::max(time, input_ready(s));
      if (better(ready, best, rule_.deeper_backward)) best = {s, ready};
    }
    return best;
  }

  std::int32_t pending_weight(std::size_t c) {
    for (const std::int32_t s : columns_.columns[c].stages) {
      if (state(s).weights < state(s).inputs) return s;
    }
    return -1;
  }

  void decide(std::size_t c, double time) {
    ColumnState& at = states_[c];
    bool blocked = false;
    const Choice forward = best_forward(c, time, blocked);
    const Choice input = best_input(c, time);
    const bool can_forward = forward.stage >= 0 && forward.start <= time;
    const bool can_input = input.stage >= 0 && input.start <= time;
    const bool forward_first = rule_.prefer != ListRule::Prefer::backward && !at.warm && !at.last_was_forward;
    if (can_input && !(forward_first && can_forward)) return start_input(c, input.stage, time);
    const bool holds_back = rule_.prefer == ListRule::Prefer::wait_for_backward && !at.warm && at.last_was_forward;
    if (can_forward && !holds_back) return start_forward(c, forward.stage, time);
    const std::int32_t weight = pending_weight(c);
    double next = std::min(forward.start > time ? expected(forward.stage, true, forward.start, time) : kNever,
                           input.start > time ? expected(input.stage, false, input.start, time) : kNever);
    if (blocked) next = kNever;
    if (weight >= 0 && (next == kNever || next - time >= rule_.gap * cost(weight).backward_weight)) {
      return start_weight(c, weight, time);
    }
    if (next < kNever) {
      events_.emplace(next, c);
    } else if (can_forward) {
      start_forward(c, forward.stage, time);
    }
  }

  // A lower bound of the time at which `s` can go on, where what it waits for has not begun: its producer has to be
  // free first. Never where that would be now: it is then not known what the producer waits for.
  double expected(std::int32_t s, bool forward, double known, double time) {
    if (s < 0 || known < kNever) return known;
    const auto& sources =
        forward ? dag_.predecessors[static_cast<std::size_t>(s)] : dag_.successors[static_cast<std::size_t>(s)];
    double bound = 0;
    for (const std::int32_t from : sources) {
      if (column(from) == column(s)) return kNever;  // it waits for itself
      const double free = std::max(time, states_[static_cast<std::size_t>(column(from))].free);
      const double length = forward ? cost(from).forward : cost(from).backward_input;
      bound = std::max(bound, free + length + (forward ? hop(from, s) : hop(s, from)));
    }
    return bound > time ? bound : kNever;
  }

  void begin(std::size_t c, double time, double length, ComputeKind kind, std::int32_t s, std::int64_t k) {
    orders_[c].push_back({kind, s, static_cast<std::int32_t>(k)});
    states_[c].free = time + length;
    events_.emplace(time + length, c);
    --left_;
  }

  // What waits may choose anew when it learns of an arrival, and again when that is there.
  void tell(std::int32_t s, double time, double arrival) {
    const auto c = static_cast<std::size_t>(column(s));
    events_.emplace(time, c);
    events_.emplace(arrival, c);
  }

  void start_forward(std::size_t c, std::int32_t s, double time) {
    const std::int64_t k = state(s).forwards++;
    const double end = time + cost(s).forward;
    state(s).forward_end[static_cast<std::size_t>(k)] = end;
    states_[c].bytes += cost(s).activations;
    states_[c].last_was_forward = true;
    begin(c, time, cost(s).forward, ComputeKind::forward, s, k);
    for (const std::int32_t next : dag_.successors[static_cast<std::size_t>(s)]) tell(next, time, end + hop(s, next));
  }

  void start_input(std::size_t c, std::int32_t s, double time) {
    const std::int64_t k = state(s).inputs++;
    const double end = time + cost(s).backward_input;
    state(s).input_end[static_cast<std::size_t>(k)] = end;
    states_[c].bytes -= cost(s).activations - cost(s).kept_for_weights;
    states_[c].last_was_forward = false;
    states_[c].warm = false;
    begin(c, time, cost(s).backward_input, ComputeKind::backward_input, s, k);
    for (const std::int32_t before : dag_.predecessors[static_cast<std::size_t>(s)]) {
      tell(before, time, end + hop(before, s));
    }
  }

  void start_weight(std::size_t c, std::int32_t s, double time) {
    const std::int64_t k = state(s).weights++;
    states_[c].bytes -= cost(s).kept_for_weights;
    begin(c, time, cost(s).backward_weight, ComputeKind::backward_weight, s, k);
  }

  using Event = std::pair<double, std::size_t>;

  const Columns& columns_;
  const StageDag& dag_;
  const ListRule& rule_;
  std::vector<StageState> stages_;
  std::vector<ColumnState> states_;
  ColumnOrders orders_;
  std::int64_t left_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

std::optional<ColumnOrders> list_schedule(const Columns& columns, const StageDag& dag, const ListRule& rule) {
  return ListScheduler(columns, dag, rule).run();
}

}  // namespace millrace::schedules
