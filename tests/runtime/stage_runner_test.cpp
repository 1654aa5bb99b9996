// Slots: as many as micro-batches live at once for each number of rows, and never two live ones in the same.
#include "runtime/stage_runner.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "program/attached.h"
#include "program/unroll.h"
#include "runtime/slots.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/training_run.h"
#include "tests/runtime/programs.h"

namespace millrace::runtime {
namespace {

using testing::training_program;
using Place = std::pair<const kernels::Executable*, int>;

class StageSlots : public ::testing::Test {
 protected:
  // A pipeline of `stages`; the runner of stage `stage` with everything that `programs` need.
  void prepare(int stages, std::int64_t micro_batches, const std::string& schedule,
               const std::vector<std::int64_t>& batches, std::int32_t stage) {
    const Plan plan = millrace::testing::make_plan(graph_, {1, stages, micro_batches, schedule});
    programs_.clear();
    for (const std::int64_t batch : batches) programs_.push_back(training_program(graph_, plan, batch));
    stage_ = stage;
    rank_ = programs_.front().stages[static_cast<std::size_t>(stage)].ranks.front();
    runner_ = std::make_unique<StageRunner>(graph_, programs_.front(), stage, kernels::Precision::fp64, 1);
    for (const Program& program : programs_) runner_->require(program, rank_);
    runner_->compile(*device_);
  }

  // Walks through the program: no two live micro-batches share a place. Returns the places used, by rows.
  std::map<std::int64_t, std::set<Place>> places(const Program& program) const {
    std::vector<std::vector<BoundMicroBatch>> bound(program.stages.size());
    bound[static_cast<std::size_t>(stage_)] = runner_->bind(program, rank_);
    Slots slots(program, bound);
    std::map<std::int64_t, std::set<Place>> used;
    std::set<Place> live;
    const auto lists = unroll(program, 4);
    for (const UnrolledInstruction& step : lists[static_cast<std::size_t>(rank_)]) {
      const Instruction& instruction =
          program.ranks[static_cast<std::size_t>(rank_)].instructions[static_cast<std::size_t>(step.position)];
      if (!is_computation(instruction.kind) || instruction.stage != stage_) continue;
      const BoundMicroBatch& at = slots.at(stage_, step.iteration, instruction.micro_batch);
      const Place place{at.executable, at.slot};
      if (instruction.kind == InstructionKind::forward) {
        EXPECT_TRUE(live.insert(place).second) << "micro-batch " << instruction.micro_batch << " overwrites a live one";
        used[at.executable->rows()].insert(place);
        EXPECT_EQ(at.executable->rows(), at.rows.size());
        EXPECT_LT(at.slot, at.executable->bytes().slots);
      }
      if (instruction.kind != InstructionKind::backward) continue;
      live.erase(place);
      slots.give_back(stage_, step.iteration, instruction.micro_batch);
    }
    EXPECT_TRUE(live.empty());
    return used;
  }

  // Slots compiled for the executables of `program`, by rows.
  std::map<std::int64_t, int> slots(const Program& program) const {
    std::map<std::int64_t, int> all;
    for (const BoundMicroBatch& at : runner_->bind(program, rank_))
      all[at.executable->rows()] = at.executable->bytes().slots;
    return all;
  }

  Graph graph_ = millrace::testing::small_network("mlp");
  std::unique_ptr<kernels::Device> device_ = kernels::make_device("reference", kernels::Precision::fp64);
  std::vector<Program> programs_;
  std::unique_ptr<StageRunner> runner_;
  std::int32_t stage_ = 0;
  int rank_ = 0;
};

TEST_F(StageSlots, GpipeKeepsEveryMicroBatch) {
  for (std::int32_t stage = 0; stage < 3; ++stage) {
    prepare(3, 5, "gpipe", {10}, stage);
    EXPECT_EQ(slots(programs_[0]), (std::map<std::int64_t, int>{{2, 5}}));
    EXPECT_EQ(places(programs_[0])[2].size(), 5U);
  }
}

TEST_F(StageSlots, OneFOneBKeepsAsManyAsStagesFollow) {
  for (const int m : {1, 2, 3, 8}) {
    for (std::int32_t stage = 0; stage < 4; ++stage) {
      prepare(4, m, "1f1b", {2 * m}, stage);
      const int live = std::min(m, 4 - stage);  // METHODS 2
      EXPECT_EQ(slots(programs_[0]), (std::map<std::int64_t, int>{{2, live}})) << "m " << m << " stage " << stage;
      EXPECT_EQ(places(programs_[0])[2].size(), static_cast<std::size_t>(live));
    }
  }
}

// Iterations overlap: a micro-batch of the next one is alive beside the same one of this.
TEST_F(StageSlots, AsynchronousSchedulesKeepAsManyAsStagesFollow) {
  for (const int m : {1, 2, 3, 8}) {
    for (std::int32_t stage = 0; stage < 4; ++stage) {
      prepare(4, m, "pipedream", {2 * m}, stage);
      EXPECT_EQ(slots(programs_[0]), (std::map<std::int64_t, int>{{2, 4 - stage}})) << "m " << m << " stage " << stage;
      EXPECT_EQ(places(programs_[0])[2].size(), static_cast<std::size_t>(4 - stage));
    }
  }
}

TEST_F(StageSlots, EachNumberOfRowsHasSlotsOfItsOwn) {
  // 13 rows in 5 micro-batches: 3 3 3 2 2. In 1f1b over 2 stages the first stage holds two at once.
  prepare(2, 5, "1f1b", {13}, 0);
  EXPECT_EQ(slots(programs_[0]), (std::map<std::int64_t, int>{{3, 2}, {2, 2}}));
  prepare(2, 5, "gpipe", {13}, 0);
  EXPECT_EQ(slots(programs_[0]), (std::map<std::int64_t, int>{{3, 3}, {2, 2}}));
  EXPECT_EQ(places(programs_[0])[3].size(), 3U);
  EXPECT_EQ(places(programs_[0])[2].size(), 2U);
}

TEST_F(StageSlots, ProgramsShareTheExecutablesOfTheirRows) {
  prepare(2, 4, "gpipe", {12, 6}, 1);  // 3 3 3 3 and 2 2 1 1
  EXPECT_EQ(slots(programs_[0]), (std::map<std::int64_t, int>{{3, 4}}));
  EXPECT_EQ(slots(programs_[1]), (std::map<std::int64_t, int>{{2, 2}, {1, 2}}));
  prepare(2, 4, "gpipe", {12, 10}, 1);  // 3 3 3 3 and 3 3 2 2
  EXPECT_EQ(runner_->bind(programs_[0], rank_)[0].executable, runner_->bind(programs_[1], rank_)[0].executable);
  EXPECT_EQ(slots(programs_[1]), (std::map<std::int64_t, int>{{3, 4}, {2, 2}}));
  places(programs_[1]);
}

TEST_F(StageSlots, EvaluationHasExecutablesOfItsOwn) {
  const Plan plan = millrace::testing::make_plan(graph_, {1, 1, 2, "gpipe"});
  const Program train = training_program(graph_, plan, 8), evaluate = lower_evaluation(graph_, plan, 8);
  StageRunner runner(graph_, train, 0, kernels::Precision::fp64, 1);
  runner.require(train, 0);
  runner.require(evaluate, 0);
  runner.compile(*device_);
  const auto training = runner.bind(train, 0), evaluating = runner.bind(evaluate, 0);
  EXPECT_NE(training[0].executable, evaluating[0].executable) << "dropout and batch norm differ";
  EXPECT_EQ(training[0].executable->bytes().slots, 2);
  EXPECT_EQ(evaluating[0].executable->bytes().slots, 1);
}

TEST_F(StageSlots, ReplicaWithoutRowsHasNoExecutable) {
  Plan plan = millrace::testing::make_plan(graph_, {1, 1, 4, "gpipe"});
  plan.pipelines[0].stages[0].devices = {0, 1};
  plan.pipelines[0].stages[0].shares = {0.9, 0.1};
  const Program program = training_program(graph_, plan, 4);  // one row a micro-batch, all on the first replica
  StageRunner runner(graph_, program, 0, kernels::Precision::fp64, 1);
  runner.require(program, 1);
  runner.compile(*device_);
  for (const BoundMicroBatch& at : runner.bind(program, 1)) {
    EXPECT_EQ(at.executable, nullptr);
    EXPECT_TRUE(at.rows.empty());
  }
  EXPECT_EQ(runner.activation_bytes(), 0);
}

}  // namespace
}  // namespace millrace::runtime
