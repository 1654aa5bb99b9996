// Messages of the engine: matched when sent and posted, then queued, shared or alone.
#include <algorithm>

#include "sim/engine.h"

#include "base/index.h"

namespace millrace::sim {
namespace {}  // namespace

// Seconds for which a message fills its link, when alone.
double Engine::flight(std::int32_t e, std::int64_t number) const {
  const EdgeState& state = edges_[at(e)];
  const Sent& sent = state.sent[number % state.count];
  return sent.seconds + sent.bytes * job_.edges[at(e)].seconds_per_byte;
}

void Engine::send(std::int32_t rank, const Step& at_step) {
  const State& state = states_[at(rank)];
  const std::int32_t e = edge_of(rank, at_step.slot);
  const std::int64_t number = std::int64_t{state.iteration} * edges_[at(e)].count + at_step.index;
  const std::int64_t m = edges_[at(e)].first + number;
  const double now = state.now;
  finish(rank, now, now);
  if (message_state_[at(m)] == Message::posted) {
    match(e, number, std::max(now, messages_[at(m)]));
  } else {
    message_state_[at(m)] = Message::sent;
    messages_[at(m)] = now;
  }
}

void Engine::post(std::int32_t e, std::int64_t number, double time) {
  const std::int64_t m = edges_[at(e)].first + number;
  if (message_state_[at(m)] == Message::sent) {
    match(e, number, std::max(time, messages_[at(m)]));
  } else {
    message_state_[at(m)] = Message::posted;
    messages_[at(m)] = time;
  }
}

// Alone it goes at once; where it shares something its turn comes in the order of time.
void Engine::match(std::int32_t e, std::int64_t number, double time) {
  message_state_[at(edges_[at(e)].first + number)] = Message::matched;
  if (flows_ || options_.contention == Contention::fixed) {
    heap_.push({time, (std::int64_t{e} << 30) + number * 4});
  } else {
    launch(e, number, time);
  }
}

void Engine::launch(std::int32_t e, std::int64_t number, double time) {
  const Edge& edge = job_.edges[at(e)];
  const double duration = flight(e, number);
  if (flows_ && duration > 0) {
    flows_->begin_transfer(time, duration, edge.ports, edges_[at(e)].ends, ((std::int64_t{e} << 28) + number) * 4 + 1);
    return;
  }
  double start = time;
  if (!receive_free_.empty()) {
    double& sender = send_free_.empty() ? receive_free_[at(edge.sender)] : send_free_[at(edge.sender)];
    double& receiver = receive_free_[at(edge.receiver)];
    start = std::max({time, sender, receiver});
    sender = receiver = start + duration;
  }
  arrive(e, number, start, start + duration + edge.latency);
}

void Engine::arrive(std::int32_t e, std::int64_t number, double start, double arrival) {
  const std::int64_t m = edges_[at(e)].first + number;
  message_state_[at(m)] = Message::arrived;
  messages_[at(m)] = arrival;
  if (flows_) begun_[at(m)] = start;
  const std::int32_t rank = job_.edges[at(e)].receiver;
  const State& receiver = states_[at(rank)];
  if (receiver.wait != Wait::message || receiver.awaited != m) return;
  if (flows_) {
    heap_.push({arrival, std::int64_t{rank} * 4 + 1});
  } else {
    finish_receive(rank);
  }
}

bool Engine::receive(std::int32_t rank, const Step& at_step) {
  State& state = states_[at(rank)];
  const std::int32_t e = edge_of(rank, at_step.slot);
  const EdgeState& edge = edges_[at(e)];
  const std::int64_t number = std::int64_t{state.iteration} * edge.count + at_step.index;
  const std::int64_t ahead = number + job_.receive_window;
  state.awaited = edge.first + number;
  if (ahead < std::int64_t{edge.count} * options_.iterations) post(e, ahead, state.now);
  state.wait = Wait::message;
  if (message_state_[at(state.awaited)] != Message::arrived) return false;
  if (flows_ && messages_[at(state.awaited)] > state.now) {
    heap_.push({messages_[at(state.awaited)], std::int64_t{rank} * 4 + 1});
  } else {
    finish_receive(rank);
  }
  return false;  // it is among the ready
}

void Engine::finish_receive(std::int32_t rank) {
  State& state = states_[at(rank)];
  const Step& step = step_of(rank);
  const std::int32_t e = edge_of(rank, step.slot);
  const double arrival = messages_[at(state.awaited)];
  const EdgeState& edge = edges_[at(e)];
  double start = flows_ ? begun_[at(state.awaited)] : 0;
  if (!flows_) start = arrival - job_.edges[at(e)].latency - flight(e, state.awaited - edge.first);
  RankOutcome& outcome = outcomes_[at(rank)];
  outcome.transfer[static_cast<std::size_t>(step.traffic)] += Seconds(arrival - start);
  if (arrival > state.now) {
    outcome.exposed[static_cast<std::size_t>(step.traffic)] += Seconds(arrival - std::max(start, state.now));
    state.variance = std::max(state.variance, states_[at(job_.edges[at(e)].sender)].variance);
  }
  finish(rank, state.now, std::max(state.now, arrival));
  ready_.push_back(rank);
}

}  // namespace millrace::sim
