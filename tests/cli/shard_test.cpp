// `millrace shard` as users call it, and runs whose stages share their operators between devices.
#include "storage/file.h"
#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const char* const kAnnotations =
    "  annotations:\n"
    "    - {tensor: \"blocks.*.attention.qkv.weight\", split: 0}\n"
    "    - {tensor: \"blocks.*.mlp.up.weight\", split: 0}\n"
    "    - {tensor: \"embedding.token.weight\", split: 0}\n";

std::string gpt(const std::string& plan, const std::string& more = "") {
  return "name: g\n"
         "model: {name: gpt, options: {layers: 2, width: 16, heads: 4, sequence: 6, vocabulary: 11, dropout: 0.1}}\n"
         "data: {batch: 8}\n" +
         more + "plan:\n" + plan;
}

std::string sharded(const std::string& annotations = kAnnotations) {
  return gpt("  mesh: {tensor: 2}\n" + annotations,
             "cluster: {flat: {devices: 2, bandwidth: 10 GB/s, latency: 5 us}}\n");
}

TEST(Shard, TextTellsTensorsOriginsAndCollectives) {
  const Workplace place;
  const Outcome outcome = place.run({"shard", place.write("e.yaml", sharded())});
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("embedding.token.weight"), HasSubstr("annotated"), HasSubstr("all_reduce"),
                                 HasSubstr("each micro-batch of 8 rows")));
}

TEST(Shard, JsonHoldsTheSame) {
  const Workplace place;
  const Outcome outcome = place.run({"shard", place.write("e.yaml", sharded()), "--format", "json"});
  expect_done(place, outcome);
  const json all = document(outcome);
  EXPECT_EQ(all.at("mesh"), json::parse(R"([{"name": "tensor", "size": 2}])"));
  EXPECT_FALSE(all.at("automatic"));
  int annotated = 0;
  for (const json& tensor : all.at("tensors")) {
    if (tensor.at("origin")[0].get<std::string>().starts_with("annotated")) ++annotated;
    if (tensor.at("name") == "blocks.1.mlp.down.weight") {
      EXPECT_EQ(tensor.at("placement"), "S1");
    }
  }
  EXPECT_EQ(annotated, 5);
  // Two a block in each pass, the table's and the loss's.
  EXPECT_GE(all.at("collectives").size(), 10U);
  EXPECT_GT(all.at("per_micro_batch").at("bytes"), 0);
}

TEST(Shard, WritesAGraphForEachDeviceAndAPicture) {
  const Workplace place;
  place.write("e.yaml", sharded());
  const std::vector<std::string> words{"shard", "e.yaml", "-o", "parts", "--dot", "g.dot"};
  expect_done(place, place.run(words));
  EXPECT_THAT(text_of(place / "g.dot"), AllOf(HasSubstr("digraph"), HasSubstr("blocks.0.mlp.up")));
  const json first = json::parse(text_of(place / "parts/device-0.json"));
  const json second = json::parse(text_of(place / "parts/device-1.json"));
  EXPECT_EQ(first.at("forward").size(), second.at("forward").size());
  EXPECT_NE(first, second);
  expect_one_error(place, place.run(words), 2, {"--overwrite"});
}

TEST(Shard, FaultsOfAnnotationsAreToldTogether) {
  const Workplace place;
  const std::string wrong =
      "  annotations:\n"
      "    - {tensor: \"blocks.*.mlp.upp.weight\", split: 0}\n"
      "    - {tensor: \"embedding.token.weight\", split: 7}\n";
  const Outcome outcome = place.run({"shard", place.write("e.yaml", sharded(wrong))});
  expect_one_error(place, outcome, 2, {"e.yaml:", "blocks.*.mlp.upp.weight", "embedding.token.weight"});
}

TEST(Shard, PlansRefuseAnnotationsLikeSimulations) {
  const Workplace place;
  place.write("e.yaml", gpt("  tensor_parallel: 2\n  stages: 1\n  annotations: [{tensor: \"nope.*\", split: 0}]\n"));
  for (const char* command : {"plan", "simulate", "check"}) {
    expect_one_error(place, place.run({command, "e.yaml", "--ranks", "2"}), 2, {"nope.*"});
  }
}

TEST(Shard, PlansNeedDevicesThatShareOperators) {
  const Workplace place;
  expect_one_error(place, place.run({"plan", place.write("a.yaml", gpt(kAnnotations)), "--ranks", "2"}), 2,
                   {"plan.annotations", "plan.tensor_parallel"});
  expect_one_error(
      place,
      place.run({"plan", place.write("b.yaml", gpt("  tensor_parallel: 2\n  mesh: {data: 2}\n")), "--ranks", "2"}), 2,
      {"plan.mesh", "millrace shard"});
  expect_one_error(place, place.run({"plan", place.write("c.yaml", gpt("  tensor_parallel: 2\n")), "--ranks", "3"}), 2,
                   {"plan.tensor_parallel", "multiple of 2"});
}

TEST(Shard, StagesOfTwoDevicesArePlannedSimulatedAndRun) {
  const Workplace place;
  const std::string train = "train: {iterations: 3, optimizer: {kind: sgd, lr: 0.1}}\n";
  place.write("one.yaml", gpt("  stages: 1\n  pipelines: 1\n", train));
  place.write("two.yaml",
              gpt("  stages: 2\n  pipelines: 1\n  micro_batches: 2\n  tensor_parallel: 2\n" + std::string(kAnnotations),
                  train));
  const Outcome plan = place.run({"plan", "two.yaml", "--ranks", "4", "-o", "p.yaml"});
  expect_done(place, plan);
  EXPECT_THAT(text_of(place / "p.yaml"), HasSubstr("tensor_parallel: 2"));
  const Outcome simulated = place.run({"simulate", "two.yaml", "--ranks", "4", "--format", "json"});
  expect_done(place, simulated);
  expect_done(place, place.run({"run", "one.yaml", "--output", "one"}, {1}));
  expect_done(place, place.run({"run", "two.yaml", "--output", "two"}, {4}));
  const auto loss = [&](const char* file) {
    return storage::File::open(place / file).table("iterations").column_reals("loss");
  };
  const std::vector<double> one = loss("one/g.h5"), two = loss("two/g.h5");
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-5 * one[i]);
  const std::string config = storage::File::open(place / "two/g.h5").text_dataset("config");
  EXPECT_THAT(config, AllOf(HasSubstr("tensor_parallel: 2"), HasSubstr("annotations"), HasSubstr("split: 0")));
}

// Parameters are whole on devices that cut the batch: they are replicas of their stage, with the shares of the parts.
TEST(Shard, AnnotationsOfTheBatchMakeReplicas) {
  const Workplace place;
  const std::string train = "train: {iterations: 3, optimizer: {kind: sgd, lr: 0.1}}\n";
  const std::string plan = "  stages: 2\n  pipelines: 1\n  micro_batches: 2\n  tensor_parallel: 2\n  annotations:\n";
  place.write("one.yaml", gpt("  stages: 1\n  pipelines: 1\n", train));
  place.write("two.yaml", gpt(plan + "    - {tensor: input, split: 0, ratios: [3, 1]}\n", train));
  expect_done(place, place.run({"plan", "two.yaml", "--ranks", "4", "-o", "p.yaml"}));
  EXPECT_THAT(text_of(place / "p.yaml"), AllOf(HasSubstr("shares: [0.75, 0.25]"), HasSubstr("tensor_parallel: 1"),
                                               Not(HasSubstr("tensor_parallel: 2"))));
  expect_done(place, place.run({"run", "one.yaml", "--output", "one"}, {1}));
  expect_done(place, place.run({"run", "two.yaml", "--output", "two"}, {4}));
  const auto loss = [&](const char* file) {
    return storage::File::open(place / file).table("iterations").column_reals("loss");
  };
  const std::vector<double> one = loss("one/g.h5"), two = loss("two/g.h5");
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-5 * one[i]);
  const std::string mixed =
      plan + "    - {tensor: input, split: 0}\n    - {tensor: \"blocks.*.mlp.up.weight\", split: 0}\n";
  expect_one_error(place, place.run({"plan", place.write("mixed.yaml", gpt(mixed)), "--ranks", "4"}), 2,
                   {"plan.annotations", "blocks.0.mlp.up", "replicas"});
  const std::string whole =
      plan + "    - {tensor: input, split: 0}\n    - {op: \"blocks.0.mlp.up\", replicate: true}\n";
  expect_one_error(place, place.run({"plan", place.write("whole.yaml", gpt(whole)), "--ranks", "4"}), 2,
                   {"plan.annotations", "blocks.0.mlp.up", "replicas"});
  const std::string nowhere = plan + "    - {tensor: nope, split: 0}\n";
  expect_one_error(place, place.run({"plan", place.write("nowhere.yaml", gpt(nowhere)), "--ranks", "4"}), 2,
                   {"nowhere.yaml:", "plan.annotations[0]: 'nope' matches no tensor"});
}

// What is split follows from sizes in bytes: all ranks go over to fp64 together.
TEST(Shard, VerifyInDoubleSplitsAnew) {
  const Workplace place;
  place.write("e.yaml",
              "name: b\nmodel: {name: bert, options: {layers: 1, width: 12, heads: 4, sequence: 8, vocabulary: 11}}\n"
              "data: {source: synthetic, batch: 8}\n"
              "plan: {tensor_parallel: 4, stages: 1, pipelines: 1, micro_batches: 2}\n"
              "train: {iterations: 1, stall_limit: 20 s, optimizer: {kind: adamw, lr: 1e-2}}\n");
  expect_done(place, place.run({"verify", "e.yaml", "--iterations", "1"}, {4}));
}

}  // namespace
}  // namespace millrace::cli
