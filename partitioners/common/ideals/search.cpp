// Goes through the ideals by ascending size; the stages from one are grown operator by operator.
#include "partitioners/common/ideals/search.h"

#include <algorithm>

namespace millrace::partitioners::ideals {

Search::Search(const plan::Problem& problem, const Lattice& lattice, Stages& stages, const Limits& limits)
    : problem_(problem),
      lattice_(lattice),
      stages_(stages),
      limits_(limits),
      measure_(problem, stages.reduces()),
      traits_(plan::schedule_traits(problem.schedule)),
      makers_(*problem.graph, lattice),
      fronts_(static_cast<std::size_t>(lattice.size())),
      seen_(static_cast<std::size_t>(lattice.size()), -1) {
  for (std::size_t kind = 0; kind < stages.kinds(); ++kind) {
    uniform_ = uniform_ && stages.links(kind).uniform();
    same_pattern_ = same_pattern_ && stages.links(kind).same_pattern(stages.links(0));
  }
  const std::int64_t m = problem.micro_batches;
  const bool depth_counts =
      traits_.needed(m, 1, stages.devices()) != traits_.needed(m, stages.devices(), stages.devices());
  counts_stages_ = problem.stages.has_value() || (stages.limited() && depth_counts);
}

Answer Search::run(double incumbent) {
  limit_ = incumbent;
  slack_ = incumbent < 1e300 ? 1e-12 * incumbent : 0.0;
  start();
  for (int ideal = 0; ideal < lattice_.whole() && !stopped_; ++ideal) {
    expand(ideal);
    fronts_[static_cast<std::size_t>(ideal)].clear();
  }
  Answer answer;
  answer.complete = !stopped_;
  answer.value = limit_;
  if (best_ >= 0) answer.cuts = trace(best_);
  return answer;
}

void Search::start() {
  const std::vector<Figures> nothing(stages_.kinds());
  const auto most = static_cast<int>(std::min<std::int64_t>(stages_.devices(), problem_.graph->size()));
  const int first = counts_stages_ ? problem_.stages.value_or(1) : 0;
  const int last = counts_stages_ ? problem_.stages.value_or(most) : 0;
  for (int left = first; left <= last; ++left) {
    State state;
    state.left = static_cast<std::int16_t>(left);
    fronts_[0][{0, left}] = {{add(state, nothing)}, nothing};
  }
}

// Work beyond which no stage from here is part of a plan below the limit, by kind of pipeline.
std::vector<double> Search::most_work(int inner) const {
  std::vector<double> most(stages_.kinds(), 0.0);
  for (const auto& [key, front] : fronts_[static_cast<std::size_t>(inner)]) {
    for (const std::int32_t state : front.states) {
      for (std::size_t kind = 0; kind < most.size(); ++kind) {
        const double room = measure_.room(figures(state)[kind], limit_);
        most[kind] = std::max(most[kind], room * stages_.speed_from(kind, key.first));
      }
    }
  }
  return most;
}

void Search::expand(int inner) {
  if (fronts_[static_cast<std::size_t>(inner)].empty()) return;
  const std::vector<double> most = most_work(inner);
  std::vector<Growing> open{{inner, {}}};
  while (!open.empty()) {
    const Growing stage = std::move(open.back());
    open.pop_back();
    if (stage.ideal != inner) extend(inner, stage);
    if (stop()) return;
    for (const Lattice::Cover& cover : lattice_.covers(stage.ideal)) {
      std::int32_t& seen = seen_[static_cast<std::size_t>(cover.ideal)];
      if (seen == inner) continue;
      seen = inner;
      bool too_long = false;
      for (std::size_t kind = 0; kind < most.size() && !too_long; ++kind) {
        too_long = stages_.work(kind, cover.ideal) - stages_.work(kind, inner) > most[kind];
      }
      if (too_long) continue;
      Growing larger{cover.ideal, stage.received};
      receive(inner, cover, larger, stage.ideal);
      open.push_back(std::move(larger));
    }
  }
}

// Tensors from before the stage that its new operator is the first to read.
void Search::receive(int inner, const Lattice::Cover& cover, Growing& stage, int grown_from) const {
  for (const TensorId input : problem_.graph->op(cover.op).inputs) {
    const OpId producer = problem_.graph->tensor(input).producer;
    if (producer < 0 || !lattice_.contains(inner, producer)) continue;
    const auto readers = problem_.graph->consumers(input);
    const auto inside = [&](OpId reader) {
      return lattice_.contains(grown_from, reader) && !lattice_.contains(inner, reader);
    };
    if (std::any_of(readers.begin(), readers.end(), inside)) continue;
    if (std::find(stage.received.begin(), stage.received.end(), input) == stage.received.end()) {
      stage.received.push_back(input);
    }
  }
}

void Search::extend(int inner, const Growing& stage) {
  const bool whole = stage.ideal == lattice_.whole();
  const int operators_left = lattice_.operators_in(lattice_.whole()) - lattice_.operators_in(stage.ideal);
  Team team;
  team.reduced_bytes = stages_.reduces() ? stages_.own_bytes(inner, stage.ideal) : 0;
  for (const auto& [key, front] : fronts_[static_cast<std::size_t>(inner)]) {
    const auto [devices, left] = key;
    if (left > 0 && (left == 1) != whole) continue;
    const int behind = whole ? 0 : std::max(1, left - 1);  // stages to come at least
    if (operators_left < behind) continue;
    const int most = stages_.devices() - devices - behind;
    const std::int64_t live =
        traits_.needed(problem_.micro_batches, std::max(1, left), problem_.stages.value_or(stages_.devices()));
    for (int replicas = whole ? most : 1; replicas <= most; ++replicas) {
      team.group = {devices, replicas};
      if (hopeless(front, inner, stage.ideal, team.group)) continue;
      if (stages_.limited() && !stages_.fits(devices, replicas, inner, stage.ideal, live, limits_.memory_margin)) {
        continue;
      }
      price(inner, stage, team);
      for (const std::int32_t state : front.states) offer(state, stage, team);
    }
  }
}

// Whether no state of the front can be extended like that, by its least figures and the work alone.
bool Search::hopeless(const Front& front, int inner, int outer, Group group) {
  const int devices = group.first + group.replicas;
  for (std::size_t kind = 0; kind < stages_.kinds(); ++kind) {
    const double speed = stages_.speed_from(kind, group.first) - stages_.speed_from(kind, devices);
    const double seconds = (stages_.work(kind, outer) - stages_.work(kind, inner)) / speed;
    if (measure_.at_least_with(front.least[kind], seconds, rest(kind, outer, devices)) >= limit_) return true;
  }
  return false;
}

void Search::price(int inner, const Growing& stage, Team& team) {
  team.costs.clear();
  for (std::size_t kind = 0; kind < stages_.kinds(); ++kind) {
    Stages::Compute cost = stages_.compute(kind, team.group.first, team.group.replicas, inner, stage.ideal);
    if (uniform_ && !stage.received.empty()) {
      const double seconds = transfer(kind, {}, stage, team.group);
      cost.forward += seconds;
      cost.backward += seconds;
    }
    team.costs.push_back(cost);
  }
}

double Search::transfer(std::size_t kind, const State& before, const Growing& stage, Group group) {
  const std::int64_t rows = stages_.most_rows(kind, group.first, group.replicas);
  Links& links = stages_.links(kind);
  double seconds = 0;
  if (uniform_) {
    const std::vector<double>& messages = links.messages(rows);
    for (const TensorId tensor : stage.received) seconds += messages[static_cast<std::size_t>(tensor)];
  } else {
    for (const TensorId tensor : stage.received) {
      seconds += links.message(tensor, rows, makers_.of(before.ideal, before.makers, tensor), group);
    }
  }
  return seconds;
}

void Search::offer(std::int32_t before, const Growing& stage, const Team& team) {
  const State from = states_[static_cast<std::size_t>(before)];
  const int devices = from.devices + team.group.replicas;
  const auto extended = [&](std::vector<Figures>& to, double reduction) {
    to.assign(figures(before).begin(), figures(before).end());
    for (std::size_t kind = 0; kind < to.size(); ++kind) {
      const double seconds = uniform_ ? 0.0 : transfer(kind, from, stage, team.group);
      measure_.add(to[kind], team.costs[kind].forward + seconds, team.costs[kind].backward + seconds, reduction);
    }
    return at_least(to, stage.ideal, devices);
  };
  // Reductions are dear to ask for, so the rest is looked at first.
  double value = extended(scratch_, 0.0);
  if (value >= limit_ - slack_) return;
  if (team.reduced_bytes > 0) {
    value = extended(scratch_, stages_.reduction(team.group.first, team.group.replicas, team.reduced_bytes));
    if (value >= limit_ - slack_) return;
  }
  State state{stage.ideal, before, 0, static_cast<std::int16_t>(devices),
              static_cast<std::int16_t>(std::max(0, from.left - 1))};
  if (stage.ideal == lattice_.whole()) {
    limit_ = value;
    slack_ = 1e-12 * value;
    best_ = add(state, scratch_);
    return;
  }
  if (!uniform_) {
    const auto reduced = [&](Group group) {
      return same_pattern_ ? stages_.links(0).equivalent(group, devices) : group;
    };
    state.makers = makers_.after(from.ideal, from.makers, stage.ideal, team.group, reduced);
  }
  keep(state, scratch_);
}

double Search::at_least(std::span<const Figures> figures, int ideal, int devices) const {
  double least = 0;
  for (std::size_t kind = 0; kind < figures.size(); ++kind) {
    least = std::max(least, measure_.at_least(figures[kind], rest(kind, ideal, devices)));
  }
  return least;
}

double Search::rest(std::size_t kind, int ideal, int devices) const {
  const double speed = stages_.speed_from(kind, devices);
  return speed > 0 ? stages_.work_behind(kind, ideal) / speed : 0.0;
}

void Search::keep(const State& state, std::span<const Figures> candidate) {
  Front& front = fronts_[static_cast<std::size_t>(state.ideal)][{state.devices, state.left}];
  const double reduction = stages_.largest_reduction(state.ideal, state.devices);
  const auto no_worse = [&](std::span<const Figures> a, std::span<const Figures> b, double slack) {
    for (std::size_t kind = 0; kind < a.size(); ++kind) {
      const double least = rest(kind, state.ideal, state.devices);
      if (!measure_.no_worse(a[kind], b[kind], least, reduction, slack)) return false;
    }
    return true;
  };
  for (const std::int32_t other : front.states) {
    const bool comparable = states_[static_cast<std::size_t>(other)].makers == state.makers;
    if (comparable && no_worse(figures(other), candidate, slack_)) return;
  }
  std::erase_if(front.states, [&](std::int32_t other) {
    return states_[static_cast<std::size_t>(other)].makers == state.makers && no_worse(candidate, figures(other), 0.0);
  });
  front.states.push_back(add(state, candidate));
  if (front.least.empty()) front.least.assign(candidate.begin(), candidate.end());
  for (std::size_t kind = 0; kind < candidate.size(); ++kind) front.least[kind].lower_to(candidate[kind]);
}

std::int32_t Search::add(const State& state, std::span<const Figures> figures) {
  states_.push_back(state);
  figures_.insert(figures_.end(), figures.begin(), figures.end());
  return static_cast<std::int32_t>(states_.size() - 1);
}

bool Search::stop() {
  constexpr std::int64_t kStepsBetweenClocks = 64;
  if (states_.size() > limits_.states) stopped_ = true;
  if (steps_++ % kStepsBetweenClocks == 0 && std::chrono::steady_clock::now() > limits_.deadline) stopped_ = true;
  return stopped_;
}

std::vector<plan::StageCut> Search::trace(std::int32_t state) const {
  std::vector<plan::StageCut> cuts;
  while (states_[static_cast<std::size_t>(state)].before >= 0) {
    const State& here = states_[static_cast<std::size_t>(state)];
    const State& before = states_[static_cast<std::size_t>(here.before)];
    cuts.push_back({lattice_.between(before.ideal, here.ideal), here.devices - before.devices});
    state = here.before;
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

}  // namespace millrace::partitioners::ideals
