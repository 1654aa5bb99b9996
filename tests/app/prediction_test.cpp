// Simulated predictions of small experiments: what slow ranks and a parameter server cost.
#include "app/prediction.h"

#include <gmock/gmock.h>

#include "app/planning.h"
#include "comm/mpi/world.h"
#include "tests/app/experiment_file.h"

namespace millrace::app {
namespace {

// 139 parameters in one bucket; links without latency.
sim::Simulation predicted(const std::string& devices, const std::string& more, double* planned = nullptr) {
  const Session session = planning_session(
      ExperimentFile(
          "name: t\nmodel: {name: mlp, options: {inputs: 4, hidden: [8, 8], classes: 3}}\ndata: {batch: 24}\n"
          "cluster: {flat: {devices: " +
          devices + ", bandwidth: 1 MB/s}}\n" + more)
          .read(),
      1);
  const Planned made = make_plans(session, Arguments());
  const plan::Candidate& best = made.ranking.plans.at(0);
  if (planned != nullptr) *planned = best.report.iteration_time_s;
  return predict(session, training_program(session, best.plan, session.experiment.data.batch, 1 << 20));
}

TEST(Prediction, AParameterServerTakesAllGradientsThroughItsLink) {
  const std::string plan = "plan: {pipelines: 4, stages: 1, micro_batches: 1, reduction: ";
  const double ring = predicted("4", plan + "all_reduce}\n").iteration_time.value();
  const double server = predicted("4", plan + "ps}\n").iteration_time.value();
  const double bytes = 139 * 4, n = 4;
  // METHODS 5: 2(n−1)·bytes·β in place of 2(n−1)/n·bytes·β.
  EXPECT_NEAR(server - ring, (2 * (n - 1) - 2 * (n - 1) / n) * bytes / 1e6, 1e-9);
}

TEST(Prediction, ASlowRankIsNotKnownToThePlan) {
  double believed = 0, believed_slow = 0;
  const std::string plan = "plan: {pipelines: 1, stages: 1, micro_batches: 2}\n";
  const sim::Simulation fast = predicted("1", plan, &believed);
  const sim::Simulation slow = predicted("1", plan + "slowdown: {0: 1.5}\n", &believed_slow);
  EXPECT_NEAR(slow.iteration_time / fast.iteration_time, 1.5, 1e-9);
  EXPECT_EQ(believed_slow, believed);
}

// Without a flush an iteration reduces beside the next one: the first distance is not the second.
TEST(Prediction, APlanIsJudgedByAsManyRoundsAsAreSimulated) {
  for (const char* schedule : {"pipedream-2bw", "1f1b"}) {
    double planned = 0;
    const std::string plan = "plan: {pipelines: 4, stages: 1, micro_batches: 2, schedule: ";
    const sim::Simulation run = predicted("4", plan + schedule + "}\n", &planned);
    EXPECT_NEAR(run.iteration_time.value(), planned, 1e-9 * planned) << schedule;
  }
}

TEST(Prediction, SlowRanksThatAreNotThereAreRefused) {
  const std::string plan = "plan: {pipelines: 2, stages: 1, micro_batches: 2}\n";
  EXPECT_THAT([&] { predicted("2", plan + "slowdown: {1: 2, 2: 2}\n"); },
              testing::ThrowsMessage<InvalidInput>(
                  testing::HasSubstr("e.yaml:6:21: slowdown.2: there is no rank 2, allowed: 0 to 1")));
}

}  // namespace
}  // namespace millrace::app
