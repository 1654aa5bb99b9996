// Which tensors are reduced together, over whom, and in which order.
#include <gmock/gmock.h>

#include "program/storage_order.h"
#include "tests/program/networks.h"

namespace millrace::test {
namespace {

using testing::ElementsAre;

std::vector<std::vector<std::string>> tensor_names(const Graph& graph, const Program& program) {
  std::vector<std::vector<std::string>> all;
  for (const Bucket& bucket : program.buckets) {
    auto& list = all.emplace_back();
    for (const TensorId tensor : bucket.tensors) list.push_back(graph.tensor(tensor).name);
  }
  return all;
}

TEST(Buckets, FillUpToTheSizeFromTheLastOperatorOn) {
  const Graph graph = chain(3);  // weights of 64 bytes, biases of 16
  Plan plan = make_plan(graph, {{.replicas = {2}, .micro_batches = 1}});
  plan.bucket_size = 160_B;
  EXPECT_THAT(tensor_names(graph, make_program(graph, plan, 2)),
              ElementsAre(ElementsAre("linear2.weight", "linear2.bias", "linear1.weight", "linear1.bias"),
                          ElementsAre("linear0.weight", "linear0.bias")));
  plan.bucket_size = 1_B;  // each larger than a bucket: alone in its own
  EXPECT_EQ(make_program(graph, plan, 2).buckets.size(), 6U);
}

TEST(Buckets, NeverStraddleOwnerSets) {
  const Graph graph = chain(3);
  // Pipeline 0 cuts after linear0, pipeline 1 after linear1: linear1 belongs to the ranks of neither stage alone.
  const Plan plan = make_plan(graph, {{.replicas = {1, 1}, .share = 0.5, .ops_per_stage = {1, 3}},
                                      {.replicas = {1, 1}, .share = 0.5, .ops_per_stage = {2, 2}}});
  const Program program = make_program(graph, plan, 4);
  EXPECT_THAT(tensor_names(graph, program),
              ElementsAre(ElementsAre("linear2.weight", "linear2.bias"), ElementsAre("linear1.weight", "linear1.bias"),
                          ElementsAre("linear0.weight", "linear0.bias")));
  EXPECT_THAT(program.buckets[0].owners, ElementsAre(1, 3));
  EXPECT_THAT(program.buckets[1].owners, ElementsAre(1, 2));
  EXPECT_THAT(program.buckets[2].owners, ElementsAre(0, 2));
}

TEST(Buckets, TiedParametersHaveTheirOwnOverAllOwnersAndComeLast) {
  const Graph graph = tied(2);
  const Plan plan = make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 2, .ops_per_stage = {2, 3}}});
  const Program program = make_program(graph, plan, 4);
  EXPECT_THAT(tensor_names(graph, program),
              ElementsAre(ElementsAre("linear1.weight", "linear1.bias"), ElementsAre("linear0.weight", "linear0.bias"),
                          ElementsAre("embedding.weight")));
  EXPECT_THAT(program.buckets[0].owners, ElementsAre(1));
  EXPECT_THAT(program.buckets[1].owners, ElementsAre(0));
  EXPECT_THAT(program.buckets[2].owners, ElementsAre(0, 1));
}

TEST(Buckets, HoldBuffersBesideParameters) {
  const Graph graph = normalised(1);
  const Program program = make_program(graph, make_plan(graph, {{.replicas = {2}}}), 2);
  ASSERT_EQ(program.buckets.size(), 1U);
  EXPECT_THAT(tensor_names(graph, program)[0],
              testing::IsSupersetOf({"norm0.running_mean", "norm0.running_var", "norm0.weight", "conv0.weight"}));
}

TEST(StorageOrder, LaysEachBucketContiguously) {
  const Graph graph = tied(2);
  const Program program = make_program(graph, make_plan(graph, {{.replicas = {1, 1}, .ops_per_stage = {2, 3}}}), 4);
  EXPECT_THAT(storage_order(program, 1),
              ElementsAre(graph.find_tensor("linear1.weight"), graph.find_tensor("linear1.bias"),
                          graph.find_tensor("embedding.weight")));
  EXPECT_THAT(stored_buckets(program, 1), ElementsAre(StoredBucket{0, 0, 2}, StoredBucket{2, 2, 1}));
  EXPECT_THAT(stored_buckets(program, 0), ElementsAre(StoredBucket{1, 0, 2}, StoredBucket{2, 2, 1}));
}

}  // namespace
}  // namespace millrace::test
