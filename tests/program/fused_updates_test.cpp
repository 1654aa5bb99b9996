// Updates inside of the backward, the places that their gradients share, and updates in parts.
#include <algorithm>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "graph/footprint.h"
#include "program/buckets.h"
#include "program/lowering.h"
#include "program/recycled_gradients.h"
#include "program/storage_order.h"
#include "program/verifier.h"
#include "schedules/registry.h"
#include "tests/program/networks.h"
#include "tests/program/symbolic_run.h"

namespace millrace::test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::ThrowsMessage;

std::vector<std::string> updates_of(const Graph& graph, const Program& program, std::size_t rank) {
  std::vector<std::string> words;
  for (const Instruction& at : program.ranks[rank].instructions) {
    if (at.bucket < 0) continue;
    const std::string_view kind = name(at.kind);
    std::string& text = words.emplace_back(kind.substr(0, kind.find('_')));
    text += " " + std::to_string(at.bucket);
    if (at.op >= 0) text += " in " + graph.op(at.op).name;
  }
  return words;
}

Program lowered_as(const Graph& graph, const Plan& plan, std::int64_t batch, const LoweringOptions& options) {
  Program program = lower(graph, plan, schedules::compute_order(plan, make_stage_dag(graph, plan)), batch, options);
  EXPECT_THAT(verify(graph, program), IsEmpty());
  EXPECT_TRUE(symbolic_run(graph, program).has_value());
  return program;
}

Plan one_linear_a_bucket(const Graph& graph, const PipelineShape& shape, std::string schedule = "gpipe") {
  Plan plan = make_plan(graph, {shape}, std::move(schedule));
  plan.bucket_size = 80_B;
  return plan;
}

TEST(FusedUpdates, OfOneOwnerRunWhereTheirGradientsAreComplete) {
  const Graph graph = chain(3);
  for (const std::int64_t m : {1, 2}) {
    const Plan plan = one_linear_a_bucket(graph, {.replicas = {1}, .micro_batches = m});
    EXPECT_THAT(updates_of(graph, lowered_as(graph, plan, 4, {.hiding = Hiding::update}), 0),
                ElementsAre("update 0 in linear2", "update 1 in linear1", "update 2 in linear0"));
    EXPECT_THAT(updates_of(graph, lowered_as(graph, plan, 4, {.hiding = Hiding::update, .fuse_updates = false}), 0),
                ElementsAre("update 0", "update 1", "update 2"));
    EXPECT_THAT(updates_of(graph, lowered_as(graph, plan, 4, {.hiding = Hiding::backward}), 0),
                ElementsAre("update 0", "update 1", "update 2"))
        << "the norm is waited for";
  }
}

// Their reductions pass beside the backward.
TEST(FusedUpdates, OfSeveralOwnersStandBehindIt) {
  const Graph graph = chain(2);
  const Plan plan = one_linear_a_bucket(graph, {.replicas = {2}, .micro_batches = 1});
  EXPECT_THAT(updates_of(graph, lowered_as(graph, plan, 4, {.hiding = Hiding::update}), 1),
              ElementsAre("reduce 0 in linear1", "reduce 1 in linear0", "update 0", "update 1"));
}

TEST(FusedUpdates, KeepNobodyWaiting) {
  // Stage 1 sends its last gradient back: its updates come after that. Stage 0 sends nothing.
  const Graph graph = chain(4);
  const Plan plan = one_linear_a_bucket(graph, {.replicas = {1, 1}, .micro_batches = 2}, "1f1b");
  const Program program = lowered_as(graph, plan, 4, {.hiding = Hiding::update});
  EXPECT_THAT(updates_of(graph, program, 1), Each(Not(HasSubstr("in"))));
  EXPECT_THAT(updates_of(graph, program, 0), Each(HasSubstr("in")));
}

TEST(FusedUpdates, SplitBackwardsUpdateWithTheirWeightGradients) {
  const Graph graph = chain(3);
  const Plan plan = one_linear_a_bucket(graph, {.replicas = {1}, .micro_batches = 2}, "zb-h1");
  EXPECT_THAT(updates_of(graph, lowered_as(graph, plan, 4, {.hiding = Hiding::update}), 0),
              ElementsAre("update 0 in linear2", "update 1 in linear1", "update 2 in linear0"));
}

TEST(FusedUpdates, AnEarlierOperatorIsNotEnough) {
  const Graph graph = chain(3);
  const Plan plan = one_linear_a_bucket(graph, {.replicas = {1}, .micro_batches = 1});
  Program program = lowered_as(graph, plan, 4, {.hiding = Hiding::update});
  for (Instruction& at : program.ranks[0].instructions) {
    if (at.kind == InstructionKind::update_weights && at.bucket == 1) at.op = 2;
  }
  const std::vector<Problem> problems = verify(graph, program);
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.front().text, HasSubstr("it starts behind linear2, but linear1 is still to add to the bucket"));
}

// Steps through the backward of the stage: no two gradients that are in use have an element in common, whatever the
// layout was made of.
void expect_apart(const Graph& graph, const Program& program, std::int32_t stage) {
  const GradientPlaces places = recycled_gradients(graph, program, stage);
  const std::vector<TensorId> order = storage_order(program, stage);
  const int rank = program.stages[static_cast<std::size_t>(stage)].ranks.front();
  const auto& list = program.ranks[static_cast<std::size_t>(rank)].instructions;
  std::vector<std::int32_t> owner(static_cast<std::size_t>(places.elements), -1);  // bucket
  const auto take = [&](std::int64_t first, std::int64_t count, std::int32_t bucket) {
    ASSERT_LE(first + count, places.elements);
    for (std::int64_t i = first; i < first + count; ++i) {
      std::int32_t& at = owner[static_cast<std::size_t>(i)];
      EXPECT_TRUE(at < 0 || at == bucket) << "element " << i << " of buckets " << at << " and " << bucket;
      at = bucket;
    }
  };
  const auto bucket_with = [&](TensorId tensor) {
    const auto found = std::find_if(program.buckets.begin(), program.buckets.end(), [&](const Bucket& bucket) {
      return std::find(bucket.tensors.begin(), bucket.tensors.end(), tensor) != bucket.tensors.end();
    });
    return static_cast<std::int32_t>(found - program.buckets.begin());
  };
  const auto position = [&](TensorId tensor) {
    return static_cast<std::size_t>(std::find(order.begin(), order.end(), tensor) - order.begin());
  };
  const auto contribute = [&](OpId op, const std::vector<TensorId>& tensors) {
    for (const TensorId tensor : tensors) {
      for (const auto& [user, first] : places.places[position(tensor)].uses) {
        if (user == op) take(first, parameter_elements(graph.tensor(tensor)), bucket_with(tensor));
      }
    }
  };
  const auto& ops = program.stages[static_cast<std::size_t>(stage)].ops;
  const auto of_bucket = [&](const Instruction& at) {
    for (const TensorId tensor : program.buckets[static_cast<std::size_t>(at.bucket)].tensors) {
      const GradientPlaces::Place& place = places.places[position(tensor)];
      const std::int64_t count = parameter_elements(graph.tensor(tensor));
      take(place.first, count, at.bucket);
      if (at.kind != InstructionKind::update_weights) continue;
      std::fill_n(owner.begin() + place.first, count, -1);
      for (const auto& [user, first] : place.uses) std::fill_n(owner.begin() + first, count, -1);
    }
  };
  std::size_t next = 0;  // instruction
  for (; next < list.size(); ++next) {
    if (list[next].kind == InstructionKind::forward) {
      for (const OpId op : ops) contribute(op, graph.op(op).buffers);
    }
    if (list[next].kind == InstructionKind::backward) {
      ++next;
      for (auto op = ops.end(); op != ops.begin();) {
        --op;
        contribute(*op, graph.op(*op).parameters);
        for (; next < list.size() && list[next].op >= *op; ++next) of_bucket(list[next]);
      }
      --next;
    } else if (list[next].bucket >= 0) {
      of_bucket(list[next]);
    }
  }
  EXPECT_THAT(owner, Each(-1));
}

TEST(RecycledGradients, AreNeverInUseTogether) {
  for (const Graph& graph : {chain(6), tied(5), normalised(3), skips(4)}) {
    for (const int replicas : {1, 2}) {
      for (const Bytes size : {Bytes(80), Bytes(200), Bytes(1000)}) {
        SCOPED_TRACE(graph.name() + " of " + std::to_string(replicas) + ", buckets of " + std::to_string(size.value()));
        Plan plan = make_plan(graph, {{.replicas = {replicas}, .micro_batches = 1}}, "gpipe");
        plan.bucket_size = size;
        const Program program = lowered_as(graph, plan, 4, {.hiding = Hiding::update});
        expect_apart(graph, program, 0);
        const Program plain = lowered_as(graph, plan, 4, {.hiding = Hiding::update, .fuse_updates = false});
        expect_apart(graph, plain, 0);
        EXPECT_EQ(plain.stages[0].gradient_share, 1);
        EXPECT_LE(program.stages[0].gradient_share, 1);
      }
    }
  }
}

TEST(RecycledGradients, OfOneOwnerTakeTheLargestBucketAlone) {
  const Graph graph = chain(6);  // alike but for the first
  const Plan plan = one_linear_a_bucket(graph, {.replicas = {1}, .micro_batches = 1});
  const Program program = lowered_as(graph, plan, 4, {.hiding = Hiding::update});
  std::int64_t largest = 0, all = 0;
  for (const Bucket& bucket : program.buckets) {
    largest = std::max(largest, bucket_elements(graph, bucket));
    all += bucket_elements(graph, bucket);
  }
  EXPECT_EQ(recycled_gradients(graph, program, 0).elements, largest);
  EXPECT_DOUBLE_EQ(program.stages[0].gradient_share, static_cast<double>(largest) / static_cast<double>(all));
  // Those that accumulate over micro-batches have a place each.
  Plan twice = plan;
  twice.pipelines[0].micro_batches = 2;
  const Program gathered = lowered_as(graph, twice, 4, {.hiding = Hiding::update});
  EXPECT_EQ(recycled_gradients(graph, gathered, 0).elements, all);
}

TEST(ShardedOptimizer, GathersBehindAllUpdates) {
  const Graph graph = chain(2);
  const Plan plan = one_linear_a_bucket(graph, {.replicas = {2}, .micro_batches = 2});
  EXPECT_THAT(updates_of(graph, lowered_as(graph, plan, 4, {.shard_optimizer = true}), 1),
              ElementsAre("reduce 0", "reduce 1", "update 0", "gather 0", "update 1", "gather 1"));
}

TEST(ShardedOptimizer, LeavesBucketsOfOneOwnerWhole) {
  const Graph graph = chain(3);
  Plan plan = make_plan(graph, {{.replicas = {1, 2}, .micro_batches = 2}}, "1f1b");
  const Program program = lowered_as(graph, plan, 4, {.shard_optimizer = true});
  EXPECT_THAT(updates_of(graph, program, 0), Each(Not(HasSubstr("gather"))));
  EXPECT_THAT(updates_of(graph, program, 1), Contains(HasSubstr("gather")));
  EXPECT_EQ(program.stages[0].optimizer_shares, std::vector<double>{1.0});
}

// Every element of every bucket has one owner that keeps its state.
TEST(ShardedOptimizer, PartsCoverEachBucketOnce) {
  const Graph graph = tied(3);
  for (const int replicas : {2, 3, 5, 40}) {  // 40: more than some parameters have elements
    Plan plan = make_plan(graph, {{.replicas = {replicas}, .micro_batches = 1}}, "gpipe");
    plan.bucket_size = 60_B;
    const Program program = lowered_as(graph, plan, replicas, {.shard_optimizer = true});
    std::int64_t all = 0;
    for (const Bucket& bucket : program.buckets) {
      std::int64_t next = 0;
      for (const int owner : bucket.owners) {
        const ElementRange part = updated_part(graph, program, bucket, owner);
        EXPECT_EQ(part.begin, next);
        next = part.end;
      }
      EXPECT_EQ(next, bucket_elements(graph, bucket));
      all += next;
    }
    std::int64_t kept = 0;
    for (int rank = 0; rank < replicas; ++rank) {
      const std::vector<ElementRange> ranges = kept_states(graph, program, 0, rank).value();
      for (const ElementRange& range : ranges) kept += range.size();
    }
    EXPECT_EQ(kept, all);
  }
}

TEST(ShardedOptimizer, RefusesWhatUpdatesInTheMidst) {
  const Graph graph = chain(2);
  const Plan plan = make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 2}}, "pipedream");
  EXPECT_THAT([&] { lowered_as(graph, plan, 2, {.shard_optimizer = true}); },
              ThrowsMessage<InvalidInput>(HasSubstr("take a synchronous schedule")));
}

}  // namespace
}  // namespace millrace::test
