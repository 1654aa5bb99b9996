// Programs with one instruction dropped, doubled or moved: whatever changes what is trained must be refused.
#include <gmock/gmock.h>

#include "base/random.h"
#include "program/describe.h"
#include "program/lowering.h"
#include "program/stage_dag.h"
#include "program/verifier.h"
#include "tests/program/networks.h"
#include "tests/program/symbolic_run.h"

namespace millrace::test {
namespace {

struct Case {
  std::string name;
  Graph graph;
  Plan plan;
  std::int64_t batch;
  LoweringOptions options{};

  Program program() const {
    return lower(graph, plan, schedules::compute_order(plan, make_stage_dag(graph, plan)), batch, options);
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::string name, Graph graph, const std::vector<PipelineShape>& shape, std::string schedule,
                       std::int64_t batch) {
    Plan plan = make_plan(graph, shape, std::move(schedule));
    plan.bucket_size = 64_B;
    all.push_back({std::move(name), std::move(graph), std::move(plan), batch});
  };
  add("skips", skips(2), {{.replicas = {1, 1, 1}, .micro_batches = 3}}, "1f1b", 3);
  add("replicas", chain(3), {{.replicas = {3, 2}, .micro_batches = 2}}, "gpipe", 13);
  add("tied", tied(2), {{.replicas = {1, 1, 1}, .micro_batches = 4}}, "1f1b", 4);
  add("split", skips(2), {{.replicas = {1, 1, 2}, .micro_batches = 3}}, "zb-h2", 6);
  add("deferred", chain(3), {{.replicas = {2, 1}, .micro_batches = 3}}, "1f1b", 6);
  all.back().plan.schedule_options[schedules::kDeferredWeights] = "2";
  add("stashes", chain(3), {{.replicas = {1, 2}, .micro_batches = 2}}, "pipedream", 4);
  add("two versions", chain(3), {{.replicas = {1, 1, 1}, .micro_batches = 3}}, "pipedream-2bw", 3);
  add("recompute", chain(3), {{.replicas = {1, 1}, .micro_batches = 2}}, "1f1b", 2);
  all.back().plan.pipelines[0].stages[0].recompute = {0};
  const auto place = [&](schedules::Placement placement) { all.back().plan = placed(all.back().plan, 2, placement); };
  add("chunks", skips(3), {{.replicas = {1, 1, 1, 1}, .micro_batches = 2}}, "interleaved", 4);
  place(schedules::Placement::in_turn);
  add("vee", tied(2), {{.replicas = {1, 1, 1, 1}, .micro_batches = 2}}, "zb-v", 2);
  place(schedules::Placement::vee);
  add("copies", chain(3), {{.replicas = {1, 1}, .micro_batches = 4}}, "chimera", 4);
  place(schedules::Placement::both_ways);
  add("pipelines", chain(3),
      {{.replicas = {1, 1}, .micro_batches = 2, .share = 0.6},
       {.replicas = {1, 1}, .micro_batches = 3, .share = 0.4, .ops_per_stage = {1, 3}}},
      "1f1b", 10);
  const auto lowered_with = [&](LoweringOptions options) { all.back().options = std::move(options); };
  add("fused", tied(2), {{.replicas = {1, 1}, .micro_batches = 2}}, "1f1b", 2);
  lowered_with({.hiding = Hiding::update});
  add("fused replicas", chain(6), {{.replicas = {3}, .micro_batches = 1}}, "gpipe", 6);
  lowered_with({.hiding = Hiding::update});
  add("parts", tied(2), {{.replicas = {3, 2}, .micro_batches = 2}}, "1f1b", 13);
  lowered_with({.shard_optimizer = true});
  add("fused parts", chain(6), {{.replicas = {2}, .micro_batches = 1}}, "gpipe", 4);
  lowered_with({.hiding = Hiding::update, .shard_optimizer = true});
  return all;
}

// Verifies a changed program; a harmful change that passes is a failure.
class Judge {
 public:
  Judge(const Case& of, const Program& program) : of_(of), expected_(symbolic_run(of.graph, program)) {
    EXPECT_TRUE(expected_.has_value()) << of.name;
  }

  bool caught(const Program& changed, const std::string& what) {
    const bool is_caught = !verify(of_.graph, changed).empty();
    const bool harmless = symbolic_run(of_.graph, changed) == expected_;
    harmful_ += harmless ? 0 : 1;
    EXPECT_TRUE(is_caught || harmless) << of_.name << ": " << what << " is harmful and was not found";
    return is_caught;
  }
  int harmful() const { return harmful_; }

 private:
  const Case& of_;
  std::optional<Outcome> expected_;
  int harmful_ = 0;
};

TEST(Mutations, DroppedAndDoubledInstructionsAreFound) {
  for (const Case& of : cases()) {
    const Program program = of.program();
    ASSERT_THAT(verify(of.graph, program), testing::IsEmpty()) << of.name;
    Judge judge(of, program);
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
      for (std::size_t i = 0; i < program.ranks[rank].instructions.size(); ++i) {
        const std::string what = describe(of.graph, program, static_cast<int>(rank), i);
        Program dropped = program;
        auto& list = dropped.ranks[rank].instructions;
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_TRUE(judge.caught(dropped, "dropping " + what)) << of.name << ": dropping " << what;
        Program doubled = program;
        auto& longer = doubled.ranks[rank].instructions;
        longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(i), longer[i]);
        EXPECT_TRUE(judge.caught(doubled, "doubling " + what)) << of.name << ": doubling " << what;
      }
    }
  }
}

TEST(Mutations, HarmfulSwapsAreFound) {
  for (const Case& of : cases()) {
    const Program program = of.program();
    Judge judge(of, program);
    const auto swap = [&](std::size_t rank, std::size_t i, std::size_t j) {
      Program swapped = program;
      std::swap(swapped.ranks[rank].instructions[i], swapped.ranks[rank].instructions[j]);
      judge.caught(swapped, "swapping " + describe(of.graph, program, static_cast<int>(rank), i) + " with " +
                                describe(of.graph, program, static_cast<int>(rank), j));
    };
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
      const std::size_t size = program.ranks[rank].instructions.size();
      for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = i + 1; j < size; ++j) swap(rank, i, j);
      }
    }
    EXPECT_GT(judge.harmful(), 60) << of.name;
  }
}

TEST(Mutations, MovedInstructionsAreFound) {
  for (const Case& of : cases()) {
    const Program program = of.program();
    Judge judge(of, program);
    const Random random(1, of.name);
    for (std::uint64_t trial = 0; trial < 300; ++trial) {
      Program moved = program;
      auto& list = moved.ranks[random.below(program.ranks.size(), 3 * trial)].instructions;
      const std::uint64_t from = random.below(list.size(), 3 * trial + 1);
      const Instruction instruction = list[from];
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(from));
      const std::uint64_t to = random.below(list.size() + 1, 3 * trial + 2);
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(to), instruction);
      judge.caught(moved, "moving " + describe(of.graph, program, instruction));
    }
    EXPECT_GT(judge.harmful(), 50) << of.name;
  }
}

TEST(Mutations, ChangedTablesAreFound) {
  for (const Case& of : cases()) {
    const Program program = of.program();
    for (std::size_t t = 0; t < program.transfers.size(); ++t) {
      const auto changed = [&](auto change) {
        Program copy = program;
        change(copy.transfers[t]);
        return verify(of.graph, copy);
      };
      EXPECT_FALSE(changed([](Transfer& x) { ++x.rows.end; }).empty());
      EXPECT_FALSE(changed([](Transfer& x) { ++x.rows.begin; }).empty());
      EXPECT_FALSE(changed([](Transfer& x) { x.tag = -1; }).empty());
      EXPECT_FALSE(changed([](Transfer& x) { x.tag = 40000; }).empty());
      EXPECT_FALSE(changed([](Transfer& x) { std::swap(x.sender, x.receiver); }).empty());
      EXPECT_FALSE(changed([](Transfer& x) { ++x.micro_batch; }).empty());
    }
    for (std::size_t b = 0; b < program.buckets.size(); ++b) {
      Program copy = program;
      copy.buckets[b].tensors.pop_back();
      EXPECT_FALSE(verify(of.graph, copy).empty()) << of.name << ": a tensor missing in bucket " << b;
      copy = program;
      copy.buckets[b].owners.push_back(static_cast<int>(program.ranks.size()));
      EXPECT_FALSE(verify(of.graph, copy).empty()) << of.name << ": an owner too many in bucket " << b;
    }
  }
}

}  // namespace
}  // namespace millrace::test
