// Collectives of the engine: those that ranks wait in, and those that run beside computation one after the other.
#include <algorithm>
#include <cmath>

#include "sim/engine.h"

#include "base/index.h"

namespace millrace::sim {
namespace {}  // namespace

bool Engine::join(std::int32_t rank, const Step& at_step) {
  State& state = states_[at(rank)];
  const std::int32_t g = group_of(rank, at_step.slot);
  GroupState& group = groups_[at(g)];
  double come = state.now;
  if (at_step.traffic != Traffic::tensor && state.variance > 0) {
    come += std::sqrt(state.variance) * group.expected;
    state.variance = 0;
  }
  group.ready = std::max(group.ready, come);
  group.seconds = std::max(group.seconds, at_step.seconds);
  state.wait = Wait::collective;
  if (++group.joined < static_cast<std::int32_t>(job_.groups[at(g)].members.size())) return false;
  if (flows_ && group.seconds > 0) {
    flows_->begin_transfer(time_, group.ready - time_ + group.seconds, job_.groups[at(g)].ports,
                           job_.groups[at(g)].members, std::int64_t{g} * 4 + 2);
  } else {
    finish_collective(g, group.ready, group.ready + group.seconds);
  }
  return false;  // it is among the ready
}

void Engine::finish_collective(std::int32_t g, double start, double end) {
  GroupState& group = groups_[at(g)];
  group.joined = 0;
  group.ready = group.seconds = 0;
  for (const std::int32_t member : job_.groups[at(g)].members) {
    const auto traffic = static_cast<std::size_t>(step_of(member).traffic);
    outcomes_[at(member)].transfer[traffic] += Seconds(end - start);
    outcomes_[at(member)].exposed[traffic] += Seconds(end - start);
    finish(member, states_[at(member)].now, end);
    ready_.push_back(member);
  }
}

void Engine::start(std::int32_t rank, const Step& at_step) {
  State& state = states_[at(rank)];
  const std::int32_t g = group_of(rank, at_step.slot);
  const std::int64_t number = std::int64_t{state.iteration} * groups_[at(g)].count + at_step.index;
  const std::size_t channel = channel_of(at_step.traffic);
  Started& collective = started({g, number});
  collective.channel = static_cast<std::uint8_t>(channel);
  const double come = state.now + (state.variance > 0 ? std::sqrt(state.variance) * groups_[at(g)].expected : 0.0);
  collective.ready = std::max(collective.ready, come);
  collective.seconds = std::max(collective.seconds, at_step.seconds);
  ++collective.joined;
  ++state.channels[channel].begun;
  finish(rank, state.now, state.now);
  run_started(g, number);
}

Engine::Which Engine::started_by(std::int32_t rank, std::size_t channel, std::int64_t ordinal) const {
  const std::vector<StartedBy>& starts = facts_[at(states_[at(rank)].program)].starts[channel];
  const auto length = static_cast<std::int64_t>(starts.size());
  const StartedBy& by = starts[at(ordinal % length)];
  const std::int32_t g = group_of(rank, by.slot);
  return {g, ordinal / length * groups_[at(g)].count + by.index};
}

bool Engine::is_oldest(std::int32_t rank, std::size_t channel, std::int32_t group, std::int64_t number) const {
  const Channel& its = states_[at(rank)].channels[channel];
  if (its.begun == its.ended) return false;
  const Which oldest = started_by(rank, channel, its.ended);
  return oldest.group == group && oldest.number == number;
}

// It runs when all members have started it and it is the oldest that each of them waits for.
void Engine::run_started(std::int32_t g, std::int64_t number) {
  Started& collective = started({g, number});
  const std::vector<std::int32_t>& members = job_.groups[at(g)].members;
  if (collective.running || collective.joined < static_cast<std::int32_t>(members.size())) return;
  double begin = collective.ready;
  for (const std::int32_t member : members) {
    if (!is_oldest(member, collective.channel, g, number)) return;
    begin = std::max(begin, states_[at(member)].channels[collective.channel].free);
  }
  collective.running = true;
  if (flows_ && collective.seconds > 0) {
    flows_->begin_transfer(time_, std::max(0.0, begin - time_) + collective.seconds, job_.groups[at(g)].ports, members,
                           ((std::int64_t{g} << 28) + number) * 4 + 3);
  } else {
    finish_started(g, number, begin, begin + collective.seconds);
  }
}

void Engine::finish_started(std::int32_t g, std::int64_t number, double begin, double end) {
  Started& collective = started({g, number});
  collective.start = begin;
  collective.end = end;
  const std::size_t channel = collective.channel;
  for (const std::int32_t member : job_.groups[at(g)].members) {
    State& state = states_[at(member)];
    Channel& its = state.channels[channel];
    const std::vector<StartedBy>& starts = facts_[at(state.program)].starts[channel];
    const auto length = static_cast<std::int64_t>(starts.size());
    const StartedBy& by = starts[at(its.ended % length)];
    const Step& step = job_.programs[at(state.program)][at(by.position)];
    outcomes_[at(member)].transfer[static_cast<std::size_t>(step.traffic)] += Seconds(end - begin);
    if (options_.rows) {
      const auto steps = static_cast<std::int64_t>(job_.programs[at(state.program)].size());
      rows_.push_back(
          {member, static_cast<std::int32_t>(its.ended / length * steps + by.position), Seconds(begin), Seconds(end)});
    }
    ++its.ended;
    its.free = end;
    const bool waits = state.wait == Wait::started && channel_of(step_of(member).traffic) == channel;
    if (waits && its.ended > state.awaited) finish_await(member);
  }
  for (const std::int32_t member : job_.groups[at(g)].members) {
    const Channel& its = states_[at(member)].channels[channel];
    if (its.begun == its.ended) continue;
    const Which next = started_by(member, channel, its.ended);
    run_started(next.group, next.number);
  }
}

bool Engine::await(std::int32_t rank, const Step& at_step) {
  State& state = states_[at(rank)];
  const std::size_t channel = channel_of(at_step.traffic);
  const Channel& its = state.channels[channel];
  state.awaited = its.begun - 1;
  if (at_step.kind == StepKind::wait_collective) {
    const ProgramFacts& facts = facts_[at(state.program)];
    const auto starts = static_cast<std::int64_t>(facts.starts[channel].size());
    state.awaited = state.iteration * starts + facts.awaits[at(state.position)];
  }
  state.wait = Wait::started;
  if (its.ended > state.awaited) finish_await(rank);
  return false;  // it is among the ready, or waits
}

// Exposed is what was in flight after the rank came to wait; collectives of one channel do not overlap.
void Engine::finish_await(std::int32_t rank) {
  State& state = states_[at(rank)];
  const std::size_t channel = channel_of(step_of(rank).traffic);
  const std::vector<StartedBy>& starts = facts_[at(state.program)].starts[channel];
  double end = state.now;
  for (std::int64_t k = state.awaited; k >= 0; --k) {
    const Started& collective = started(started_by(rank, channel, k));
    if (collective.end <= state.now) break;
    end = std::max(end, collective.end);
    const StartedBy& by = starts[at(k % static_cast<std::int64_t>(starts.size()))];
    const Step& step = job_.programs[at(state.program)][at(by.position)];
    outcomes_[at(rank)].exposed[static_cast<std::size_t>(step.traffic)] +=
        Seconds(collective.end - std::max(collective.start, state.now));
  }
  if (end > state.now) state.variance = 0;
  finish(rank, state.now, end);
  ready_.push_back(rank);
}

}  // namespace millrace::sim
