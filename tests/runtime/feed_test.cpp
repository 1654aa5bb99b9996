// Every row of every micro-batch holds the sample that the shared order puts there, inputs and labels alike.
#include "runtime/feed.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "tests/mpi/networks.h"
#include "tests/mpi/training_run.h"
#include "tests/runtime/programs.h"

namespace millrace::runtime {
namespace {

using testing::training_program;

constexpr std::int64_t kInputs = 12, kClasses = 5;  // of the small mlp

float input_of(std::int64_t id, std::int64_t i) { return static_cast<float>(id) + 0.01F * static_cast<float>(i); }
std::int32_t label_of(std::int64_t id) { return static_cast<std::int32_t>((id * 3 + 1) % kClasses); }

// Samples that tell their number.
class TellingSource final : public dataset::Source {
 public:
  explicit TellingSource(std::int64_t samples)
      : Source({dataset::InputKind::real, {kInputs}, 1, kClasses}), samples_(samples) {}
  std::int64_t samples(dataset::Split) const override { return samples_; }
  void read_inputs(dataset::Split, std::span<const std::int64_t> ids, float* to) const override {
    for (const std::int64_t id : ids) {
      for (std::int64_t i = 0; i < kInputs; ++i) *to++ = input_of(id, i);
    }
  }
  void read_labels(dataset::Split, std::span<const std::int64_t> ids, std::int32_t* to) const override {
    for (const std::int64_t id : ids) *to++ = label_of(id);
  }

 private:
  std::int64_t samples_;
};

// One rank: its stage, its executables and its feed.
class FedRank {
 public:
  FedRank(const Graph& graph, const std::vector<Program>& programs, std::int32_t stage, int rank,
          const dataset::Source& source, const dataset::SampleOrder& order)
      : graph_(graph), rank_(rank), runner_(graph, programs.front(), stage, kernels::Precision::fp32, 1) {
    std::vector<const Program*> pointers;
    for (const Program& program : programs) {
      runner_.require(program, rank);
      pointers.push_back(&program);
    }
    runner_.compile(*kernels::make_device("reference", kernels::Precision::fp32));
    for (const Program& program : programs) {
      bound_.push_back(runner_.bind(program, rank));
      for (BoundMicroBatch& at : bound_.back()) at.slot = 0;  // one after the other
    }
    feed_.emplace(graph, pointers, rank, source, dataset::Split::train, order);
    programs_ = pointers;
  }

  Feed& feed() { return *feed_; }

  // Fills all micro-batches of the batch and holds them against `ids`; adds the samples read to the sets.
  void check(const std::vector<std::int64_t>& ids, std::multiset<std::int64_t>& inputs,
             std::multiset<std::int64_t>& labels) {
    for (std::size_t p = 0; p < programs_.size(); ++p) {
      if (programs_[p]->batch != static_cast<std::int64_t>(ids.size())) continue;
      for (const BoundMicroBatch& at : bound_[p]) {
        if (at.executable == nullptr) continue;
        feed_->fill(runner_.graph(), at, kernels::Precision::fp32);
        for (std::int64_t row = 0; row < at.rows.size(); ++row) {
          check_row(at, row, ids[static_cast<std::size_t>(at.rows.begin + row)], inputs, labels);
        }
      }
    }
  }

 private:
  void check_row(const BoundMicroBatch& at, std::int64_t row, std::int64_t id, std::multiset<std::int64_t>& inputs,
                 std::multiset<std::int64_t>& labels) {
    for (const TensorId tensor : runner_.graph().inputs) {
      const void* data = at.executable->input(at.slot, tensor);
      if (graph_.tensor(tensor).role == Role::label) {
        EXPECT_EQ(static_cast<const std::int32_t*>(data)[row], label_of(id)) << "rank " << rank_ << " row " << row;
        labels.insert(id);
      } else if (graph_.tensor(tensor).role == Role::input) {
        for (std::int64_t i = 0; i < kInputs; ++i) {
          ASSERT_EQ(static_cast<const float*>(data)[row * kInputs + i], input_of(id, i)) << "rank " << rank_;
        }
        inputs.insert(id);
      }
    }
  }

  const Graph& graph_;
  int rank_;
  StageRunner runner_;
  std::vector<std::vector<BoundMicroBatch>> bound_;
  std::vector<const Program*> programs_;
  std::optional<Feed> feed_;
};

// Two pipelines of unequal shares, the second with three replicas of its first stage and two of its last.
Plan uneven_plan(const Graph& graph) {
  Plan plan = millrace::testing::make_plan(graph, {2, 2, 3, "1f1b"});
  plan.pipelines[0].share = 0.3;
  plan.pipelines[1].share = 0.7;
  plan.pipelines[1].micro_batches = 4;
  plan.pipelines[1].stages[0].devices = {2, 3, 4};
  plan.pipelines[1].stages[0].shares = {0.5, 0.2, 0.3};
  plan.pipelines[1].stages[1].devices = {5, 6};
  plan.pipelines[1].stages[1].shares = {0.35, 0.65};
  return plan;
}

std::multiset<std::int64_t> each_once(std::int64_t samples) {
  std::multiset<std::int64_t> ids;
  for (std::int64_t id = 0; id < samples; ++id) ids.insert(id);
  return ids;
}

TEST(Feed, RowsOfUnevenMicroBatchesReachTheirExecutables) {
  const Graph graph = millrace::testing::small_network("mlp");
  constexpr std::int64_t kSamples = 53, kBatch = 23;  // batches of 23, 23 and 7
  const Plan plan = uneven_plan(graph);
  const std::vector<Program> programs{training_program(graph, plan, kBatch), training_program(graph, plan, 7)};
  const TellingSource source(kSamples);
  dataset::SampleOrder order(9, kSamples, kBatch, dataset::Tail::uneven);

  std::vector<std::unique_ptr<FedRank>> ranks;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(programs[0].stages.size()); ++s) {
    for (const int rank : programs[0].stages[static_cast<std::size_t>(s)].ranks) {
      ranks.push_back(std::make_unique<FedRank>(graph, programs, s, rank, source, order));
      ranks.back()->feed().start(0, 6);
    }
  }
  std::vector<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::multiset<std::int64_t> inputs, labels;
    orders.emplace_back();
    for (std::int64_t step = epoch * 3; step < epoch * 3 + 3; ++step) {
      const dataset::Batch expected = order.batch(step);
      orders.back().insert(orders.back().end(), expected.ids.begin(), expected.ids.end());
      for (auto& rank : ranks) {
        const dataset::Batch& batch = rank->feed().next();
        ASSERT_EQ(batch.ids, expected.ids);
        EXPECT_EQ(batch.epoch, epoch);
        EXPECT_EQ(batch.valid, step % 3 == 2 ? 7 : kBatch);
        rank->check(batch.ids, inputs, labels);
      }
    }
    // REPORTS D05: an epoch is every sample once, over all ranks; R08: labels come from the same batches.
    EXPECT_EQ(inputs, each_once(kSamples));
    EXPECT_EQ(labels, each_once(kSamples));
  }
  EXPECT_NE(orders[0], orders[1]);
}

TEST(Feed, StartsAnywhereInTheRun) {
  const Graph graph = millrace::testing::small_network("mlp");
  const std::vector<Program> programs{training_program(graph, millrace::testing::make_plan(graph, {}), 8)};
  const TellingSource source(30);
  dataset::SampleOrder order(9, 30, 8, dataset::Tail::drop);
  FedRank rank(graph, programs, 0, 0, source, order);
  for (const std::int64_t first : {std::int64_t{4}, std::int64_t{1}}) {
    rank.feed().start(first, 2);
    for (std::int64_t step = first; step < first + 2; ++step) {
      std::multiset<std::int64_t> inputs, labels;
      const dataset::Batch& batch = rank.feed().next();
      EXPECT_EQ(batch.ids, order.batch(step).ids);
      rank.check(batch.ids, inputs, labels);
    }
    rank.feed().stop();
  }
}

TEST(Feed, PaddingRepeatsSamplesOfItsOwnBatch) {
  const Graph graph = millrace::testing::small_network("mlp");
  const std::vector<Program> programs{
      training_program(graph, millrace::testing::make_plan(graph, {1, 1, 3, "gpipe"}), 8)};
  const TellingSource source(11);
  const dataset::SampleOrder order(9, 11, 8, dataset::Tail::pad);
  FedRank rank(graph, programs, 0, 0, source, order);
  rank.feed().start(0, 2);
  rank.feed().next();
  std::multiset<std::int64_t> inputs, labels;
  const dataset::Batch& batch = rank.feed().next();
  EXPECT_EQ(batch.valid, 3);
  rank.check(batch.ids, inputs, labels);
  EXPECT_EQ(inputs.size(), 8U);
  EXPECT_EQ((std::set<std::int64_t>(inputs.begin(), inputs.end()).size()), 3U);
}

}  // namespace
}  // namespace millrace::runtime
