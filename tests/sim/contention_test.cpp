// How messages and collectives share links: small jobs whose times are computed by hand.
#include <vector>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "sim/run.h"

namespace millrace::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kLatency = 1;

Step compute(double seconds) { return {.seconds = seconds}; }
Step send(std::int16_t slot) { return {.kind = StepKind::send, .slot = slot, .bytes = 4}; }
Step receive(std::int16_t slot) { return {.kind = StepKind::receive, .slot = slot}; }

// A message of 4 bytes: 4 s on its link, then 1 s of latency.
std::int32_t connect(Job& job, std::int32_t from, std::int32_t to, std::vector<PortUse> ports = {}) {
  const std::int32_t edge = job.connect(from, to, kLatency, 1);
  job.edges[static_cast<std::size_t>(edge)].ports = std::move(ports);
  return edge;
}

std::vector<double> ends(const Job& job, const Options& options) {
  std::vector<double> out;
  for (const RankOutcome& rank : run(job, options).ranks) out.push_back(rank.end.value());
  return out;
}

// Rank 0 sends to ranks 1 and 2 at time 0, through one port.
Job two_from_one(double load = 1) {
  Job job;
  job.ports = 1;
  job.add_rank(job.add_program({send(0), send(1)}));
  for (int r = 1; r <= 2; ++r) job.add_rank(job.add_program({receive(0)}));
  connect(job, 0, 1, {{0, load}});
  connect(job, 0, 2, {{0, load}});
  return job;
}

TEST(Contention, MessagesOfOneRank) {
  EXPECT_THAT(ends(two_from_one(), {}), ElementsAre(0, 5, 5));
  EXPECT_THAT(ends(two_from_one(), {.contention = Contention::fixed}), ElementsAre(0, 5, 9));
  EXPECT_THAT(ends(two_from_one(), {.contention = Contention::dynamic}), ElementsAre(0, 9, 9));
  EXPECT_THAT(ends(two_from_one(0.5), {.contention = Contention::dynamic}), ElementsAre(0, 5, 5));
  EXPECT_THAT(ends(two_from_one(0.75), {.contention = Contention::dynamic}), ElementsAre(0, 7, 7));
}

// Two ranks that send to each other at time 0. With ports, one for both ways or one each.
Job exchange(int ports) {
  Job job;
  job.ports = ports;
  job.add_rank(job.add_program({send(0), receive(1)}));
  job.add_rank(job.add_program({send(1), receive(0)}));
  connect(job, 0, 1, {{0, 1}});
  connect(job, 1, 0, {{ports - 1, 1}});
  return job;
}

TEST(Contention, DuplexOfALink) {
  EXPECT_THAT(ends(exchange(1), {.contention = Contention::fixed}), ElementsAre(5, 5));
  EXPECT_THAT(ends(exchange(1), {.contention = Contention::fixed, .half_duplex = true}), ElementsAre(9, 5));
  EXPECT_THAT(ends(exchange(2), {.contention = Contention::dynamic}), ElementsAre(5, 5));
  EXPECT_THAT(ends(exchange(1), {.contention = Contention::dynamic}), ElementsAre(9, 9));
}

TEST(Contention, FlowsSpeedUpWhenOthersEnd) {
  // The first is alone for 2 s, both share until it ends at 6, the second has 2 s left then.
  Job job;
  job.ports = 1;
  for (const double wait : {0.0, 2.0}) job.add_rank(job.add_program({compute(wait), send(0)}));
  for (int r = 0; r < 2; ++r) job.add_rank(job.add_program({receive(0)}));
  connect(job, 0, 2, {{0, 1}});
  connect(job, 1, 3, {{0, 1}});
  EXPECT_THAT(ends(job, {.contention = Contention::dynamic}), ElementsAre(0, 2, 7, 9));
}

TEST(Contention, MessagesTakeTheirTurnsInTheOrderOfTime) {
  // Rank 1 is ready to send at 1, rank 0 at 2: rank 2 receives the message of rank 1 first, though it waits for the
  // other.
  Job job;
  for (const double wait : {2.0, 1.0}) job.add_rank(job.add_program({compute(wait), send(0)}));
  job.add_rank(job.add_program({receive(0), receive(1)}));
  connect(job, 0, 2);
  connect(job, 1, 2);
  EXPECT_THAT(ends(job, {.contention = Contention::fixed}), ElementsAre(2, 1, 10));
  EXPECT_THAT(ends(job, {}), ElementsAre(2, 1, 7));
}

TEST(Contention, CollectivesShareWithMessages) {
  Job job;
  job.ports = 1;
  job.add_rank(job.add_program({{.kind = StepKind::collective, .seconds = 4}}));
  job.add_rank(job.add_program({{.kind = StepKind::collective, .seconds = 4}, send(0)}));
  job.add_rank(job.add_program({send(0)}));
  job.add_rank(job.add_program({receive(0), receive(1)}));
  job.groups.reserve(1);
  job.groups[static_cast<std::size_t>(job.add_group({0, 1}))].ports = {{0, 1}};
  connect(job, 1, 3, {{0, 1}});
  connect(job, 2, 3, {{0, 1}});
  // The collective and the message of rank 2 share the port until 8; the last message is alone.
  EXPECT_THAT(ends(job, {.contention = Contention::dynamic}), ElementsAre(8, 8, 0, 13));
}

// A rank computes 6 s beside a reduction of 3 s, then waits for it.
Job beside() {
  Job job;
  for (int r = 0; r < 2; ++r) {
    job.add_rank(job.add_program({{.kind = StepKind::start_collective, .traffic = Traffic::gradients, .seconds = 3},
                                  compute(r == 0 ? 6 : 0),
                                  {.kind = StepKind::wait_collective}}));
  }
  job.add_group({0, 1});
  return job;
}

TEST(Contention, OverlapSlowsBoth) {
  EXPECT_THAT(ends(beside(), {}), ElementsAre(6, 3));
  // Both run at 1/1.5 until the reduction ends at 4.5; 3 s of computation are left.
  EXPECT_THAT(ends(beside(), {.overlap = 1.5}), ElementsAre(7.5, 4.5));
}

TEST(Contention, ExposedIsWhatARankWaitsForInFlight) {
  const Outcome outcome = run(beside());
  const auto gradients = static_cast<std::size_t>(Traffic::gradients);
  EXPECT_EQ(outcome.ranks[0].exposed[gradients], 0_s);
  EXPECT_EQ(outcome.ranks[1].exposed[gradients], 3_s);
  EXPECT_EQ(outcome.ranks[0].transfer[gradients], 3_s);
}

TEST(Contention, IterationsFollowWithoutAGap) {
  // Two ranks in a line, 2 s of computation each: the second iteration starts while the first is on its way.
  Job job;
  job.add_rank(job.add_program({compute(2), send(0)}));
  job.add_rank(job.add_program({receive(0), compute(2)}));
  connect(job, 0, 1);
  job.receive_window = 4;
  const Outcome outcome = run(job, {.iterations = 4});
  EXPECT_EQ(outcome.makespan, Seconds(2 + 5 + 2 + 3 * 2));
  EXPECT_EQ(outcome.iteration_time, 2_s);
}

TEST(Contention, JobsThatCannotEndAreTold) {
  Job job;
  job.add_rank(job.add_program({receive(0), send(1)}));
  job.add_rank(job.add_program({receive(1), send(0)}));
  connect(job, 1, 0);
  connect(job, 0, 1);
  EXPECT_THAT([&] { run(job); }, ThrowsMessage<Error>(HasSubstr("rank 0 waits for ever at step 0")));
}

TEST(Contention, JobsThatDoNotFitAreRefused) {
  Job job;
  job.add_rank(job.add_program({send(0), send(0)}));
  job.add_rank(job.add_program({receive(0)}));
  connect(job, 0, 1);
  EXPECT_THAT([&] { check(job); },
              ThrowsMessage<InvalidInput>(HasSubstr("sends the messages of edge slot 0 not each")));
  job.programs[0] = {};
  EXPECT_THAT([&] { check(job); }, ThrowsMessage<InvalidInput>(HasSubstr("rank 0 sends 0 messages on edge 0")));
  job.ranks[1].edges.clear();
  EXPECT_THAT([&] { check(job); }, ThrowsMessage<InvalidInput>(HasSubstr("its program names 1")));
}

}  // namespace
}  // namespace millrace::sim
