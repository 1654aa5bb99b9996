// Piper's formula against numbers by hand, and its search against every plan of small graphs.
#include <gmock/gmock.h>

#include "base/errors.h"
#include "partitioners/common/piper/search.h"
#include "plan/validate.h"
#include "tests/partitioners/no_deadline.h"
#include "tests/partitioners/published/cases.h"

namespace millrace::partitioners {
namespace {

using testing_support::each_division;
using testing_support::equal_nodes;
using testing_support::one_pipeline;
using testing_support::PublishedCase;

constexpr auto kPiper = plan::Objective::time_per_sample;
// Operators of these variants, [operator][degree 1, 2][plain, recomputed]; the edges carry bytes.
Graph piper_graph(TensorParallelModel model) {
  GraphBuilder builder("piper");
  std::vector<TensorId> outputs;
  for (OpId op = 0; op < static_cast<OpId>(model.ops.size()); ++op) {
    std::vector<TensorId> inputs;
    for (const auto& edge : model.edges) {
      if (edge.to == op) inputs.push_back(outputs[static_cast<std::size_t>(edge.from)]);
    }
    outputs.push_back(builder.add_cost(fmt::format("n{}", op), std::move(inputs), {.forward_s = 1}));
  }
  builder.carry({"piper", std::move(model)});
  return builder.build();
}

// Three in a row, and an edge from the first to the last; degree 2 takes 0.6 of the time and synchronises 1 B.
TensorParallelModel three_variants() {
  TensorParallelModel model;
  model.edges = {{0, 1, 8}, {0, 2, 2}, {1, 2, 4}};
  for (OpId op = 0; op < 3; ++op) {
    const double time = 10.0 * (op + 1);
    auto& degrees = model.ops.emplace_back();
    for (const int degree : {1, 2}) {
      std::vector<std::pair<OpId, double>> before, after;
      for (const auto& edge : model.edges) {
        if (edge.to == op) before.emplace_back(edge.from, degree - 1);
        if (edge.from == op) after.emplace_back(edge.to, degree - 1);
      }
      const double p = degree == 1 ? time : 0.6 * time;
      degrees.push_back({degree,
                         {{"vanilla", p, 6.0 / degree, 4, 10, before, after},
                          {"recomputed", p * 1.5, 6.0 / degree, 1, 11, before, after}}});
    }
  }
  return model;
}

PublishedCase make(int devices, double memory, std::int64_t batch = 4) {
  return {piper_graph(three_variants()), equal_nodes(1, devices, 2, 1, Bytes(static_cast<std::int64_t>(memory))),
          kPiper, batch};
}

TEST(PiperFormula, StagesOnOneDeviceEach) {
  const PublishedCase c = make(4, 1000);
  // {n0}: 10 + 2·(8 + 2)/2; {n1}: 20 + 2·8/2 + 2·4/2; {n2}: 30 + 2·(2 + 4)/2.
  const plan::Judgement judgement = plan::judge(one_pipeline({0, 1, 2}, {1, 1, 1}), c.problem);
  EXPECT_EQ(judgement.value, 36);
  EXPECT_EQ(judgement.limiting_stage, 2);
  EXPECT_EQ(judgement.why_not, "");
  EXPECT_EQ(judgement.memory_bytes, 3 * 4 + 10);  // n0 has two stages behind it: 3 live micro-batches
}

TEST(PiperFormula, ReplicasTensorParallelDegreeAndRecomputation) {
  const PublishedCase c = make(8, 1000);
  Plan plan = one_pipeline({0, 0, 1}, {2, 2});
  Stage& first = plan.pipelines[0].stages[0];
  first.tensor_parallel = 2;
  first.devices = {0, 1, 4, 5};
  first.recompute = {1};
  // {n0, n1}, degree 2, d = 2: (6 + 18)/2 + [2·(2 + 1) + 2·(4 + 1)]/(2·2) + 4·1·(3 + 3)/(2·4·2) = 12 + 4 + 1.5.
  // {n2}, d = 2: 30/2 + 2·(2 + 4)/(2·2) + 4·6/(2·4·2) = 15 + 3 + 1.5.
  const plan::Judgement judgement = plan::judge(plan, c.problem);
  EXPECT_DOUBLE_EQ(judgement.value, 19.5);
  // 4 replicas from the first stage on: ⌈4/2⌉ = 2 live: (4·2 + 10) + (1·2 + 11).
  EXPECT_EQ(judgement.memory_bytes, 31);
  first.recompute = {};
  EXPECT_EQ(plan::judge(plan, make(8, 35).problem).why_not.substr(0, 21), "stage 0 needs 36 byte");
}

TEST(PiperFormula, RefusesWhatItsRulesForbid) {
  const PublishedCase c = make(8, 1000);
  EXPECT_THAT(plan::judge(one_pipeline({0, 0, 0}, {3}), c.problem).why_not, testing::HasSubstr("do not divide"));
  EXPECT_THAT(plan::judge(one_pipeline({0, 1, 1}, {4, 1}), c.problem).why_not, testing::HasSubstr("5 replicas"));
  Plan plan = one_pipeline({0, 0, 0}, {4});
  plan.pipelines[0].stages[0].tensor_parallel = 4;
  plan.pipelines[0].stages[0].shares = {1};
  EXPECT_THAT(plan::judge(plan, c.problem).why_not, testing::HasSubstr("4 tensor-parallel devices"));
  EXPECT_FALSE(std::isfinite(plan::judge(plan, c.problem).value));
  plan::Problem other = c.problem;
  const Graph profile = testing_support::profile({{1, 0, 0, {}}});
  other.graph = &profile;
  EXPECT_THROW(plan::judge(one_pipeline({0}, {1}), other), InvalidInput);
}

// Small uneven figures; some operators lack degree 2, some the recomputed variant.
TensorParallelModel random_model(int size, std::uint64_t seed) {
  const Random random(seed, "piper");
  std::uint64_t drawn = 0;
  const auto draw = [&](std::uint64_t bound) { return static_cast<double>(random.below(bound, drawn++)); };
  TensorParallelModel model;
  for (OpId to = 1; to < size; ++to) {
    for (OpId from = std::max(0, to - 2); from < to; ++from) {
      if (draw(3) > 0) model.edges.push_back({from, to, draw(6)});
    }
  }
  for (OpId op = 0; op < size; ++op) {
    auto& degrees = model.ops.emplace_back();
    const double time = 1 + draw(9), weights = draw(4), a = 1 + draw(6), b = draw(6);
    const bool recompute = draw(4) > 0;
    for (int degree = 1; degree <= (draw(4) > 0 ? 2 : 1); ++degree) {
      std::vector<std::pair<OpId, double>> before, after;
      for (const auto& edge : model.edges) {
        if (edge.to == op) before.emplace_back(edge.from, degree == 1 ? 0 : draw(3));
        if (edge.from == op) after.emplace_back(edge.to, degree == 1 ? 0 : draw(3));
      }
      const double share = degree == 1 ? 1 : 0.5 + 0.1 * draw(5);
      TensorParallelModel::Degree of{degree, {{"vanilla", time * share, weights, a * share, b, before, after}}};
      if (recompute) of.variants.push_back({"recomputed", time * share * 1.3, weights, 0.5, b + 1, before, after});
      degrees.push_back(std::move(of));
    }
  }
  return model;
}

class EveryPiperPlan {
 public:
  explicit EveryPiperPlan(const PublishedCase& c) : case_(c) {}

  double best() {
    each_division(case_.graph, case_.cluster.size(), [&](const std::vector<int>& stage_of, int stages) {
      plan_ = one_pipeline(stage_of, std::vector<int>(static_cast<std::size_t>(stages), 1));
      choose(0, 0);
    });
    return best_;
  }

 private:
  // Degree, replicas and recomputed operators of stage s and those behind it.
  void choose(std::size_t s, int used) {
    std::vector<Stage>& stages = plan_.pipelines[0].stages;
    if (s == stages.size()) {
      const plan::Judgement judgement = plan::judge(plan_, case_.problem);
      if (judgement.why_not.empty()) best_ = std::min(best_, judgement.value);
      return;
    }
    for (const int degree : {1, 2}) {
      for (int replicas = 1; used + degree * replicas <= case_.cluster.size(); ++replicas) {
        Stage& stage = stages[s];
        stage.tensor_parallel = degree;
        stage.shares.assign(static_cast<std::size_t>(replicas), 1.0 / replicas);
        stage.devices.resize(static_cast<std::size_t>(degree * replicas));
        std::iota(stage.devices.begin(), stage.devices.end(), used);
        for (unsigned set = 0; set < 1U << stage.ops.size(); ++set) {
          std::vector<OpId> recompute;
          for (std::size_t i = 0; i < stage.ops.size(); ++i) {
            if ((set >> i & 1) != 0) recompute.push_back(stage.ops[i]);
          }
          stages[s].recompute = std::move(recompute);
          choose(s + 1, used + degree * replicas);
        }
      }
    }
  }

  const PublishedCase& case_;
  Plan plan_;
  double best_ = INFINITY;
};

Plan to_plan(const PiperPlan& found) {
  Plan plan;
  plan.pipelines.emplace_back();
  int device = 0;
  for (const PiperStage& from : found.stages) {
    Stage& stage = plan.pipelines[0].stages.emplace_back();
    stage.ops = from.ops;
    stage.recompute = from.recompute;
    stage.tensor_parallel = from.tensor_parallel;
    stage.shares.assign(static_cast<std::size_t>(from.replicas), 1.0 / from.replicas);
    for (int d = 0; d < from.replicas * from.tensor_parallel; ++d) stage.devices.push_back(device++);
  }
  return plan;
}

TEST(PiperSearch, IsAsGoodAsTheBestOfAllPlans) {
  int none = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const int size = 1 + static_cast<int>(seed % 4), devices = 1 + static_cast<int>(seed % 3);
    const std::int64_t memory = 3 + static_cast<std::int64_t>(seed * 7 % 24);
    const PublishedCase c(piper_graph(random_model(size, seed)), equal_nodes(1, devices, 4, 1, Bytes(memory)), kPiper,
                          2 + static_cast<std::int64_t>(seed % 2));
    const double best = EveryPiperPlan(c).best();
    const PiperPlan found = piper_search(c.problem, kNoDeadline);
    ASSERT_EQ(found.stages.empty(), best == INFINITY) << seed;
    EXPECT_LE(plan::bound_time_per_sample(c.problem), best * (1 + 1e-12));
    none += found.stages.empty() ? 1 : 0;
    if (found.stages.empty()) continue;
    EXPECT_TRUE(found.proven);
    EXPECT_NEAR(found.value, best, 2e-12 * best) << seed;
    EXPECT_NEAR(found.bound, best, 2e-12 * best) << seed;
    const plan::Judgement judgement = plan::judge(to_plan(found), c.problem);
    EXPECT_NEAR(judgement.value, found.value, 1e-12 * best) << seed;
    EXPECT_EQ(judgement.why_not, "") << seed;
    EXPECT_TRUE(plan::validate(to_plan(found), c.graph, {}).empty());
  }
  EXPECT_GT(none, 3);  // memory is too small for some
  EXPECT_LT(none, 40);
}

TEST(PiperSearch, AnswersAfterItsDeadline) {
  const PublishedCase c(piper_graph(random_model(60, 3)), equal_nodes(1, 16, 4), kPiper, 8);
  const PiperPlan found = piper_search(c.problem, std::chrono::steady_clock::time_point::min());
  EXPECT_TRUE(found.late);
  EXPECT_FALSE(found.proven);
  ASSERT_FALSE(found.stages.empty());
  EXPECT_EQ(plan::judge(to_plan(found), c.problem).why_not, "");
  const PiperPlan best = piper_search(c.problem, kNoDeadline);
  EXPECT_LE(best.value, found.value);
  EXPECT_LE(found.bound, best.value);
}

}  // namespace
}  // namespace millrace::partitioners
