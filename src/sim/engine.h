// The simulator's inside: ranks run ahead as far as they can, transfers that share something come in order of time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/flows.h"
#include "sim/heap.h"
#include "sim/run.h"

namespace millrace::sim {

/// Most times are maxima of what came before, so a rank may go on alone until it waits for another one. Only what
/// ranks share out among themselves goes through the heap: messages that queue for a rank's channels (fixed), and all
/// work whose speed changes while it runs (dynamic, overlap), which Flows keeps.
class Engine {
 public:
  Engine(const Job& job, const Options& options);
  Outcome run();

 private:
  enum class Wait : std::uint8_t { none, computing, message, collective, started };
  enum class Message : std::uint8_t { unknown, sent, posted, matched, arrived };

  struct Channel {  // of started collectives, which run one after the other
    double free = 0;
    std::int64_t begun = 0;
    std::int64_t ended = 0;
  };
  static constexpr std::size_t kChannels = 2;  // those of tensor-parallel ranks have their own
  static std::size_t channel_of(Traffic traffic) { return traffic == Traffic::tensor ? 1 : 0; }

  struct State {
    double now = 0;
    double variance = 0;  // of `now`, of a rank that stands for several
    Channel channels[kChannels];
    std::int64_t awaited = -1;  // a message, or a number of started collectives of the step's channel
    std::int32_t position = 0;
    std::int32_t iteration = 0;
    std::int32_t program = 0;
    Wait wait = Wait::none;
  };
  struct Sent {
    double seconds = 0, bytes = 0;
  };
  struct EdgeState {
    std::int64_t first = 0;  // in messages_
    std::int32_t count = 0;  // of one iteration
    const Sent* sent = nullptr;
    std::int32_t ends[2] = {0, 0};
  };
  struct GroupState {
    std::int32_t joined = 0;  // of the collective that members wait in
    double ready = 0;
    double seconds = 0;
    std::int64_t first = 0;  // in started_
    std::int32_t count = 0;  // started collectives of one iteration
    double expected = 0;     // of the largest of its size normal numbers
  };
  struct Started {
    double ready = 0, seconds = 0, start = 0, end = 0;
    std::int32_t joined = 0;
    std::uint8_t channel = 0;
    bool running = false;
  };
  struct StartedBy {  // a start_collective step of a program
    std::int32_t position = 0;
    std::int16_t slot = 0;
    std::int32_t index = 0;
  };
  struct ProgramFacts {
    std::vector<std::vector<Sent>> sent;       // by edge slot and message
    std::vector<std::int32_t> started;         // by group slot: how many
    std::vector<StartedBy> starts[kChannels];  // in order
    std::vector<std::int32_t> awaits;  // by step: the start of its channel that it waits for; negative: last round's
  };

  const Step& step_of(std::int32_t rank) const {
    const State& state = states_[static_cast<std::size_t>(rank)];
    return job_.programs[static_cast<std::size_t>(state.program)][static_cast<std::size_t>(state.position)];
  }
  std::int32_t edge_of(std::int32_t rank, std::int16_t slot) const {
    return edge_ids_[static_cast<std::size_t>(edge_first_[static_cast<std::size_t>(rank)] + slot)];
  }
  std::int32_t group_of(std::int32_t rank, std::int16_t slot) const {
    return group_ids_[static_cast<std::size_t>(group_first_[static_cast<std::size_t>(rank)] + slot)];
  }

  // engine.cpp
  void learn_programs();
  void lay_out();
  void expect_noise();
  void go_on(std::int32_t rank);
  bool step(std::int32_t rank);
  bool compute(std::int32_t rank, const Step& at);
  double noise(std::int32_t rank) const;
  void finish(std::int32_t rank, double start, double end);
  void handle(const Event& event);
  void flow_ended(const Flows::Ended& ended);
  Outcome result();

  // messages.cpp
  double flight(std::int32_t edge, std::int64_t number) const;
  bool receive(std::int32_t rank, const Step& at);
  void send(std::int32_t rank, const Step& at);
  void post(std::int32_t edge, std::int64_t number, double time);
  void match(std::int32_t edge, std::int64_t number, double time);
  void launch(std::int32_t edge, std::int64_t number, double time);
  void arrive(std::int32_t edge, std::int64_t number, double start, double arrival);
  void finish_receive(std::int32_t rank);

  // collectives.cpp
  bool join(std::int32_t rank, const Step& at);
  void finish_collective(std::int32_t group, double start, double end);
  void start(std::int32_t rank, const Step& at);
  void run_started(std::int32_t group, std::int64_t number);
  bool is_oldest(std::int32_t rank, std::size_t channel, std::int32_t group, std::int64_t number) const;
  void finish_started(std::int32_t group, std::int64_t number, double start, double end);
  bool await(std::int32_t rank, const Step& at);
  void finish_await(std::int32_t rank);
  struct Which {
    std::int32_t group = 0;
    std::int64_t number = 0;
  };
  Which started_by(std::int32_t rank, std::size_t channel, std::int64_t ordinal) const;
  Started& started(Which which) {
    return started_[static_cast<std::size_t>(groups_[static_cast<std::size_t>(which.group)].first + which.number)];
  }

  const Job& job_;
  Options options_;
  std::vector<ProgramFacts> facts_;
  std::vector<State> states_;
  std::vector<RankOutcome> outcomes_;
  std::vector<std::int32_t> edge_first_, edge_ids_, group_first_, group_ids_;
  std::vector<EdgeState> edges_;
  std::vector<GroupState> groups_;
  std::vector<double> messages_;  // time of what is known
  std::vector<double> begun_;     // of messages, kept with flows only
  std::vector<Message> message_state_;
  std::vector<double> receive_free_, send_free_;  // by rank, fixed contention
  std::vector<Started> started_;
  std::vector<std::int32_t> ready_;
  std::vector<std::vector<double>> expected_;  // by rank that stands for several, by step
  std::vector<bool> noisy_;
  std::optional<NoiseSource> source_;
  EventHeap heap_;
  std::optional<Flows> flows_;
  std::vector<StepRow> rows_;
  double time_ = 0;  // of the last event
  double first_end_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace millrace::sim
