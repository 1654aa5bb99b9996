// Setting up, the loop over ranks and events, computation, and the figures at the end.
#include "sim/engine.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/index.h"

namespace millrace::sim {
namespace {}  // namespace

Engine::Engine(const Job& job, const Options& options) : job_(job), options_(options) {
  learn_programs();
  lay_out();
  if (options.contention == Contention::dynamic || options.overlap != 1) {
    flows_.emplace(job.ports, job.ranks.size(), options.overlap, heap_);
    begun_.resize(messages_.size());
  } else if (options.contention == Contention::fixed) {
    receive_free_.resize(job.ranks.size());
    if (!options.half_duplex) send_free_.resize(job.ranks.size());
  }
  if (options.noise.shape != Shape::none && options.noise.spread > 0) expect_noise();
}

void Engine::learn_programs() {
  facts_.resize(job_.programs.size());
  for (std::size_t p = 0; p < facts_.size(); ++p) {
    const std::vector<Step>& steps = job_.programs[p];
    ProgramFacts& facts = facts_[p];
    facts.awaits.assign(steps.size(), 0);
    std::map<std::pair<std::int16_t, std::int32_t>, std::int32_t> numbers;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      const std::size_t slot = at(step.slot);
      if (step.kind == StepKind::send) {
        if (facts.sent.size() <= slot) facts.sent.resize(slot + 1);
        if (facts.sent[slot].size() <= at(step.index)) facts.sent[slot].resize(at(step.index) + 1);
        facts.sent[slot][at(step.index)] = {step.seconds, static_cast<double>(step.bytes)};
      } else if (step.kind == StepKind::start_collective) {
        if (facts.started.size() <= slot) facts.started.resize(slot + 1);
        ++facts.started[slot];
        std::vector<StartedBy>& starts = facts.starts[channel_of(step.traffic)];
        numbers[{step.slot, step.index}] = static_cast<std::int32_t>(starts.size());
        starts.push_back({static_cast<std::int32_t>(i), step.slot, step.index});
      }
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind != StepKind::wait_collective) continue;
      const auto found = numbers.find({steps[i].slot, steps[i].index});
      if (found == numbers.end()) {
        throw InvalidInput(
            fmt::format("job: program {}, step {} waits for collective {} of group slot {}, which it "
                        "does not start",
                        p, i, steps[i].index, steps[i].slot));
      }
      const std::vector<StartedBy>& starts = facts.starts[channel_of(steps[i].traffic)];
      const bool later = at(starts[at(found->second)].position) > i;
      facts.awaits[i] = found->second - (later ? static_cast<std::int32_t>(starts.size()) : 0);
    }
  }
}

void Engine::lay_out() {
  states_.resize(job_.ranks.size());
  outcomes_.resize(job_.ranks.size());
  edges_.resize(job_.edges.size());
  groups_.resize(job_.groups.size());
  for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
    const Rank& rank = job_.ranks[r];
    const ProgramFacts& facts = facts_[at(rank.program)];
    states_[r].program = rank.program;
    edge_first_.push_back(static_cast<std::int32_t>(edge_ids_.size()));
    group_first_.push_back(static_cast<std::int32_t>(group_ids_.size()));
    edge_ids_.insert(edge_ids_.end(), rank.edges.begin(), rank.edges.end());
    group_ids_.insert(group_ids_.end(), rank.groups.begin(), rank.groups.end());
    for (std::size_t slot = 0; slot < std::min(facts.sent.size(), rank.edges.size()); ++slot) {
      EdgeState& edge = edges_[at(rank.edges[slot])];
      if (facts.sent[slot].empty()) continue;
      edge.count = static_cast<std::int32_t>(facts.sent[slot].size());
      edge.sent = facts.sent[slot].data();
    }
    for (std::size_t slot = 0; slot < std::min(facts.started.size(), rank.groups.size()); ++slot) {
      groups_[at(rank.groups[slot])].count = facts.started[slot];
    }
  }
  std::int64_t messages = 0;
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    edges_[e].first = messages;
    edges_[e].ends[0] = job_.edges[e].sender;
    edges_[e].ends[1] = job_.edges[e].receiver;
    messages += std::int64_t{edges_[e].count} * options_.iterations;
  }
  messages_.resize(at(messages));
  message_state_.resize(at(messages), Message::unknown);
  std::int64_t started = 0;
  for (GroupState& group : groups_) {
    group.first = started;
    started += std::int64_t{group.count} * options_.iterations;
  }
  started_.resize(at(started));
}

// What a rank that stands for several takes for each computation: the expected slowest of the group that it meets next.
void Engine::expect_noise() {
  const Noise& noise = options_.noise;
  source_.emplace(noise);
  noisy_.assign(job_.ranks.size(), noise.ranks.empty());
  const auto number = [&](std::size_t r) {
    return job_.ranks[r].number < 0 ? static_cast<std::int32_t>(r) : job_.ranks[r].number;
  };
  if (!noise.ranks.empty()) {
    std::vector<std::int32_t> named = noise.ranks;
    std::sort(named.begin(), named.end());
    for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
      noisy_[r] = std::binary_search(named.begin(), named.end(), number(r));
    }
  }
  std::map<std::int64_t, double> factors, normals;
  const auto factor = [&](std::int64_t n) {
    const auto [found, is_new] = factors.try_emplace(n, 0.0);
    if (is_new) found->second = expected_maximum(noise, n);
    return found->second;
  };
  bool folded = false;
  expected_.resize(job_.ranks.size());
  for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
    if (job_.ranks[r].multiplicity == 1 || !noisy_[r]) continue;
    folded = true;
    const std::vector<Step>& steps = job_.programs[at(job_.ranks[r].program)];
    expected_[r].resize(steps.size());
    std::int64_t next = 1;
    for (std::size_t i = steps.size(); i-- > 0;) {
      if (steps[i].kind == StepKind::collective && steps[i].traffic == Traffic::tensor) {
        next = std::min(job_.groups[at(job_.ranks[r].groups[at(steps[i].slot)])].size, job_.ranks[r].multiplicity);
      }
      expected_[r][i] = factor(next);
    }
  }
  for (std::size_t g = 0; folded && g < groups_.size(); ++g) {
    const std::int64_t size = job_.groups[g].size;
    const auto [found, is_new] = normals.try_emplace(size, 0.0);
    if (is_new) found->second = expected_normal_maximum(size);
    groups_[g].expected = found->second;
  }
}

Outcome Engine::run() {
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const std::int64_t all = std::int64_t{edges_[e].count} * options_.iterations;
    for (std::int64_t n = 0; n < std::min<std::int64_t>(all, job_.receive_window); ++n) {
      post(static_cast<std::int32_t>(e), n, 0);
    }
  }
  for (std::size_t r = states_.size(); r-- > 0;) ready_.push_back(static_cast<std::int32_t>(r));
  for (;;) {
    while (!ready_.empty()) {
      const std::int32_t rank = ready_.back();
      ready_.pop_back();
      go_on(rank);
    }
    if (heap_.empty()) break;
    const Event event = heap_.top();
    heap_.pop();
    handle(event);
  }
  return result();
}

void Engine::go_on(std::int32_t rank) {
  State& state = states_[at(rank)];
  if (job_.programs[at(state.program)].empty()) state.iteration = options_.iterations;
  while (state.iteration < options_.iterations && step(rank)) {
  }
}

bool Engine::step(std::int32_t rank) {
  const Step& at_step = step_of(rank);
  switch (at_step.kind) {
    case StepKind::compute:
      return compute(rank, at_step);
    case StepKind::send:
      send(rank, at_step);
      return true;
    case StepKind::receive:
      return receive(rank, at_step);
    case StepKind::collective:
      return join(rank, at_step);
    case StepKind::start_collective:
      start(rank, at_step);
      return true;
    case StepKind::wait_collective:
    case StepKind::wait_started:
      return await(rank, at_step);
  }
  return false;
}

double Engine::noise(std::int32_t rank) const {
  if (!noisy_[at(rank)]) return 1;
  const State& state = states_[at(rank)];
  const Rank& who = job_.ranks[at(rank)];
  if (who.multiplicity > 1) return expected_[at(rank)][at(state.position)];
  const auto length = static_cast<std::int64_t>(job_.programs[at(state.program)].size());
  return source_->factor(who.number < 0 ? rank : who.number, state.iteration * length + state.position);
}

bool Engine::compute(std::int32_t rank, const Step& at_step) {
  State& state = states_[at(rank)];
  double seconds = at_step.seconds * job_.ranks[at(rank)].slowness;
  if (source_) {
    if (job_.ranks[at(rank)].multiplicity > 1 && noisy_[at(rank)]) {
      state.variance += seconds * seconds * variance(options_.noise);
    }
    seconds *= noise(rank);
  }
  if (flows_ && seconds > 0) {
    state.wait = Wait::computing;
    flows_->begin_compute(state.now, rank, seconds, std::int64_t{rank} * 4);
    return false;
  }
  outcomes_[at(rank)].busy += Seconds(seconds);
  finish(rank, state.now, state.now + seconds);
  return true;
}

void Engine::finish(std::int32_t rank, double start, double end) {
  State& state = states_[at(rank)];
  const std::vector<Step>& steps = job_.programs[at(state.program)];
  ++steps_;
  if (options_.rows && steps[at(state.position)].kind != StepKind::start_collective) {
    const auto length = static_cast<std::int32_t>(steps.size());
    rows_.push_back({rank, state.iteration * length + state.position, Seconds(start), Seconds(end)});
  }
  state.now = end;
  state.wait = Wait::none;
  if (++state.position < static_cast<std::int32_t>(steps.size())) return;
  state.position = 0;
  if (++state.iteration == 1) first_end_ = std::max(first_end_, end);
}

// Keys: messages end on 0, ranks that go on after a receive on 1, flows on 2.
void Engine::handle(const Event& event) {
  time_ = event.time;
  if (Flows::is_flow(event.key)) {
    Flows::Ended ended;
    if (flows_->end(event, ended)) flow_ended(ended);
  } else if (event.key % 4 == 1) {
    finish_receive(static_cast<std::int32_t>(event.key / 4));
  } else {
    launch(static_cast<std::int32_t>(event.key >> 30), (event.key & ((std::int64_t{1} << 30) - 1)) / 4, event.time);
  }
}

// Tokens: computation of a rank ends on 0, messages on 1, collectives on 2, started ones on 3.
void Engine::flow_ended(const Flows::Ended& ended) {
  const std::int64_t what = ended.token / 4;
  const auto high = static_cast<std::int32_t>(what >> 28);
  const std::int64_t low = what & ((std::int64_t{1} << 28) - 1);
  switch (ended.token % 4) {
    case 0: {
      const auto rank = static_cast<std::int32_t>(what);
      outcomes_[at(rank)].busy += Seconds(time_ - ended.began);
      finish(rank, ended.began, time_);
      ready_.push_back(rank);
      break;
    }
    case 1:
      arrive(high, low, ended.began, time_ + job_.edges[at(high)].latency);
      break;
    case 2:
      finish_collective(static_cast<std::int32_t>(what), ended.began, time_);
      break;
    default:
      finish_started(high, low, ended.began, time_);
      break;
  }
}

Outcome Engine::result() {
  Outcome out;
  double makespan = 0;
  for (std::size_t r = 0; r < states_.size(); ++r) {
    const State& state = states_[r];
    if (state.iteration < options_.iterations) {
      const Step& stuck = step_of(static_cast<std::int32_t>(r));
      throw Error(ExitCode::internal,
                  fmt::format("simulation: rank {} waits for ever at step {} (label {}) of its program", r,
                              state.position, stuck.label));
    }
    outcomes_[r].end = Seconds(state.now);
    makespan = std::max(makespan, state.now);
  }
  for (const Started& collective : started_) makespan = std::max(makespan, collective.end);
  out.makespan = Seconds(makespan);
  out.iteration_time = out.makespan;
  if (options_.iterations > 1) out.iteration_time = Seconds((makespan - first_end_) / (options_.iterations - 1));
  out.ranks = std::move(outcomes_);
  out.rows = std::move(rows_);
  out.steps = steps_;
  return out;
}

Outcome run(const Job& job, const Options& options) { return Engine(job, options).run(); }

}  // namespace millrace::sim
