// Which gradients are kept as factors, and what that takes.
#include "program/factored_gradients.h"

#include <gmock/gmock.h>

#include "graph/footprint.h"
#include "graph/graph_builder.h"
#include "program/lowering.h"
#include "program/recycled_gradients.h"
#include "program/storage_order.h"
#include "program/verifier.h"
#include "schedules/registry.h"
#include "tests/program/networks.h"

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kInputs = 2048;
constexpr std::int64_t kOutputs = 1024;

// kInputs → kOutputs → 4 → loss
Graph wide_layer(std::vector<std::int64_t> before = {}) {
  GraphBuilder builder("wide");
  before.push_back(kInputs);
  TensorId x = builder.input("input", {.dims = before});
  for (const auto& [name, width] : {std::pair<std::string, std::int64_t>{"wide", kOutputs}, {"last", 4}}) {
    OpSpec spec;
    spec.name = name;
    spec.kind = "linear";
    spec.inputs = {x};
    spec.attributes = {{"out_features", width}};
    x = builder.add(std::move(spec));
  }
  before.back() = 4;
  const TensorId target = builder.label("target", {.dims = before});
  OpSpec loss;
  loss.name = "loss";
  loss.kind = "mean_squared_error";
  loss.inputs = {x, target};
  builder.add(std::move(loss));
  return builder.build();
}

Program lowered(const Graph& graph, const PipelineShape& shape, std::int64_t batch, LoweringOptions options,
                const std::string& schedule = "1f1b") {
  Plan plan = make_plan(graph, {shape}, schedule);
  plan.bucket_size = 4_MiB;
  Program program = lower(graph, plan, schedules::compute_order(plan, make_stage_dag(graph, plan)), batch, options);
  EXPECT_THAT(verify(graph, program), IsEmpty());
  return program;
}

std::vector<std::int64_t> rows_kept(const Program& program) {
  std::vector<std::int64_t> rows;
  for (const Bucket& bucket : program.buckets) rows.push_back(bucket.factor_rows);
  return rows;
}

const LoweringOptions kUpdates{.hiding = Hiding::update};

// Buckets: what is behind the wide layer, its weight, its bias.
TEST(FactoredGradients, AreThoseOfLargeWeightsAndFewRows) {
  const Graph graph = wide_layer();
  EXPECT_THAT(rows_kept(lowered(graph, {.replicas = {1}}, 8, kUpdates)), ElementsAre(0, 8, 0));
  EXPECT_THAT(rows_kept(lowered(graph, {.replicas = {1}, .micro_batches = 2}, 8, kUpdates)), ElementsAre(0, 8, 0));
  EXPECT_THAT(rows_kept(lowered(graph, {.replicas = {4}}, 8, kUpdates)), ElementsAre(0, 8, 0));
  EXPECT_THAT(rows_kept(lowered(graph, {.replicas = {1}}, 43, kUpdates)), ElementsAre(0, 0, 0)) << "2^21 / 16 / 3072";
  EXPECT_THAT(rows_kept(lowered(wide_layer({3}), {.replicas = {1}}, 8, kUpdates)), ElementsAre(0, 24, 0));
  EXPECT_THAT(rows_kept(lowered(chain(2), {.replicas = {1}}, 1, kUpdates)), ElementsAre(0)) << "small";
}

// As the buckets of programs are, of which the smaller weight may share one.
TEST(FactoredGradients, LayersAreKnownBeforeThereIsAProgram) {
  const Graph graph = wide_layer();
  EXPECT_THAT(factored_layers(graph, 8, 4_MiB), ElementsAre(0));
  EXPECT_THAT(factored_layers(graph, 8, 8_MiB), ElementsAre(0));
  EXPECT_THAT(factored_layers(graph, 8, 9_MiB), IsEmpty());
  EXPECT_THAT(factored_layers(graph, 43, 4_MiB), IsEmpty());
}

TEST(FactoredGradients, AShorterBatchHasTheSamePlaces) {
  const Graph graph = wide_layer();
  LoweringOptions of_tail = kUpdates;
  of_tail.largest_batch = 8;
  const Program whole = lowered(graph, {.replicas = {1}, .micro_batches = 2}, 8, kUpdates);
  const Program tail = lowered(graph, {.replicas = {1}, .micro_batches = 2}, 3, of_tail);
  EXPECT_EQ(recycled_gradients(graph, whole, 0), recycled_gradients(graph, tail, 0));
}

TEST(FactoredGradients, AreNotKeptWhereTheGradientIsAskedForAsAWhole) {
  const Graph graph = wide_layer();
  const std::vector<std::int64_t> none(3, 0);
  EXPECT_EQ(rows_kept(lowered(graph, {.replicas = {1}}, 8, {.hiding = Hiding::backward})), none) << "norm";
  EXPECT_EQ(rows_kept(lowered(graph, {.replicas = {2}}, 8, {.hiding = Hiding::update, .shard_optimizer = true})), none);
  EXPECT_EQ(rows_kept(lowered(graph, {.replicas = {1}}, 8, {.hiding = Hiding::update, .factor_gradients = false})),
            none);
}

// Factors for the whole batch, room for a part of what they make, the other gradients.
TEST(FactoredGradients, TakeTheirRowsAndAPart) {
  const Graph graph = wide_layer();
  for (const int replicas : {1, 2}) {
    const Program program = lowered(graph, {.replicas = {replicas}, .micro_batches = 2}, 8, kUpdates);
    const GradientPlaces places = recycled_gradients(graph, program, 0);
    const std::int64_t others = kOutputs + 4 * kOutputs + 4;
    const std::int64_t factors = 8 * (kInputs + kOutputs);
    const std::int64_t part = std::int64_t{1} << 19;
    EXPECT_EQ(places.elements, others + factors + part);
    EXPECT_EQ(places.part, others + factors);
    EXPECT_DOUBLE_EQ(program.stages[0].gradient_share,
                     static_cast<double>(places.elements) / static_cast<double>(others + kInputs * kOutputs));
  }
  // Where the others take turns, the larger of them has the place.
  const Program recycling = lowered(graph, {.replicas = {1}, .micro_batches = 1}, 8, kUpdates);
  const std::int64_t largest = 4 * kOutputs + 4;
  EXPECT_EQ(recycled_gradients(graph, recycling, 0).elements,
            largest + 8 * (kInputs + kOutputs) + (std::int64_t{1} << 19));
}

}  // namespace
}  // namespace millrace::test
