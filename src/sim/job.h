// What the simulator runs: step lists shared by equal ranks, the edges and groups through which ranks meet.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace millrace::sim {

/// What a transfer is for; results keep these apart (METHODS 1, hidden communication). Started collectives of `tensor`
/// have a channel of their own; all others of a rank share one. Those of a channel run one after the other.
enum class Traffic : std::uint8_t { p2p, gradients, tensor };
inline constexpr std::size_t kTrafficKinds = 3;

enum class StepKind : std::uint8_t {
  compute,           ///< the rank computes for `seconds`
  send,              ///< starts message `index` of edge `slot`; does not wait
  receive,           ///< waits for message `index` of edge `slot`; posts the message `receive_window` after it
  collective,        ///< waits until all of group `slot` have come, then for `seconds`
  start_collective,  ///< joins collective `index` of group `slot`, which takes `seconds`; does not wait
  wait_collective,   ///< waits for the end of collective `index` of group `slot`
  wait_started       ///< waits for the end of every collective that the rank has started on the channel of its traffic
};

/// One thing that a rank does. Ranks with the same list share it.
struct Step {
  StepKind kind = StepKind::compute;
  Traffic traffic = Traffic::p2p;
  std::int16_t slot = 0;    ///< in Rank::edges (send, receive) or Rank::groups (collectives)
  std::int32_t index = 0;   ///< messages of an edge count from 0 in the order of their receives; started collectives of
                            ///< a group count from 0 in the order in which every member starts them
  double seconds = 0;       ///< compute: at slowness 1; collective, start_collective: alone on its links; send: added
                            ///< to what the edge asks for its bytes
  std::int64_t bytes = 0;   ///< send: of the message
  std::int64_t memory = 0;  ///< change of the bytes in use: a rise when the step starts, a fall when it ends
  std::int32_t label = -1;  ///< for whoever reads the rows; the simulator does not look at it

  bool operator==(const Step&) const = default;
};

/// A link, port or bus that flows share under Contention::dynamic. A flow that could fill it alone has load 1.
struct PortUse {
  std::int32_t port = 0;
  double load = 1;  ///< of all equal flows that are folded into this one
};

/// The way of messages from one rank to another: a message takes latency + Step::seconds + bytes · seconds_per_byte.
struct Edge {
  std::int32_t sender = 0;
  std::int32_t receiver = 0;
  double latency = 0;
  double seconds_per_byte = 0;
  std::vector<PortUse> ports{};
};

/// Ranks that take part in collectives together.
struct Group {
  std::vector<std::int32_t> members;
  std::int64_t size = 0;  ///< ranks that the members stand for: what noise takes its expected maximum over
  std::vector<PortUse> ports{};
};

/// One rank, or `multiplicity` ranks that behave alike.
struct Rank {
  std::int32_t program = 0;
  std::int64_t multiplicity = 1;
  double slowness = 1;                ///< factor on every compute step: unequal devices, stragglers
  std::int32_t number = -1;           ///< what random draws know it by; -1: its place in Job::ranks
  std::vector<std::int32_t> edges{};  ///< slots of its steps
  std::vector<std::int32_t> groups{};
};

/// One iteration of a training job. A folded job is a job like any other: a rank there stands for several.
struct Job {
  std::vector<std::vector<Step>> programs;
  std::vector<Rank> ranks;
  std::vector<Edge> edges;
  std::vector<Group> groups;
  std::int32_t ports = 0;  ///< PortUse::port is below it
  int receive_window = 1;  ///< receives posted ahead of the one waited for, by edge (METHODS 4)

  /// Appends; returns the index.
  std::int32_t add_program(std::vector<Step> steps);
  std::int32_t add_rank(std::int32_t program, std::int64_t multiplicity = 1, double slowness = 1);
  /// The next edge slot of both ranks: a send of the sender and a receive of the receiver name it.
  std::int32_t connect(std::int32_t sender, std::int32_t receiver, double latency, double seconds_per_byte);
  /// The next group slot of each member. `size` 0: the sum of the members' multiplicities.
  std::int32_t add_group(std::vector<std::int32_t> members, std::int64_t size = 0);

  std::int64_t devices() const;  ///< Σ multiplicity
};

/// \throws InvalidInput  a slot, rank, port or program that does not exist, a negative time, a message that is received
///                       or sent twice, received and never sent, or the reverse; says where.
void check(const Job& job);

/// Highest sum of Step::memory over each program, in bytes: what changes while it runs, without what always stays.
std::vector<std::int64_t> peak_memory(const Job& job);

}  // namespace millrace::sim
