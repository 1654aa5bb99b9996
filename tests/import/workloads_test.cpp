// Every published workload reads, with the counts and sums of the workloads' own table, and survives a round trip.
#include <gtest/gtest.h>

#include "import/graph_file.h"
#include "import/import.h"
#include "tests/import/samples.h"

namespace millrace::import {
namespace {

struct Workload {
  std::string file;
  std::int64_t nodes;
  double sum;  ///< Σ/k of dnn-partitioning to 3 digits; seconds of all operators, forward and backward, of the others
};

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> rows{
      {"dnn-partitioning/layer/bert24_inference.json", 32, 15.401},
      {"dnn-partitioning/layer/bert24_training.json", 64, 36.302},
      {"dnn-partitioning/layer/resnet50_inference.json", 177, 33.575},
      {"dnn-partitioning/layer/resnet50_training.json", 354, 77.064},
      {"dnn-partitioning/layer/gnmt_inference.json", 96, 30.427},
      {"dnn-partitioning/layer/gnmt_training.json", 192, 86.742},
      {"dnn-partitioning/operator/bert_l-3_inference.json", 235, 16.451},
      {"dnn-partitioning/operator/bert_l-3_training.json", 600, 40.996},
      {"dnn-partitioning/operator/resnet50_inference.json", 604, 54.189},
      {"piper/bert32a100.json", 37, 0.972864},
      {"piper/resnet.json", 177, 462.381},
      {"pipedream/alexnet.txt", 23, 0.721223},
      {"pipedream/densenet121.txt", 429, 0.335240},
      {"pipedream/gnmt.txt", 48, 0.089416},
      {"pipedream/gnmt_large.txt", 96, 0.520453},
      {"pipedream/nasnetamobile.txt", 921, 0.599844},
      {"pipedream/resnet18.txt", 71, 0.733367},
      {"pipedream/resnet50.txt", 177, 0.462381},
      {"pipedream/vgg16.txt", 41, 0.690507},
      {"dapple/amoeba-18-pbs-8.txt", 26, 0.717810},
      {"dapple/bert-48-pbs-2.txt", 53, 0.343757},
      {"dapple/gnmt-32-pbs-64-simplified.txt", 67, 0.445611},
      {"dapple/vgg-19-pbs-32.txt", 26, 0.147610},
  };
  return rows;
}

class PublishedWorkload : public testing::TestWithParam<Workload> {
 protected:
  void SetUp() override {
    folder_ = samples::workloads();
    if (!folder_) GTEST_SKIP() << "no folder of published workloads; set MILLRACE_WORKLOADS";
  }
  Imported load_it() const { return load(*folder_ / GetParam().file); }

  std::optional<std::filesystem::path> folder_;
};

std::int64_t nodes_of(const Graph& graph) {
  const auto* split = std::get_if<SplitModel>(&graph.carried()->extra);
  if (split == nullptr) return graph.size();
  std::int64_t nodes = 0;
  for (const SplitModel::Op& op : split->ops) nodes += op.nodes;
  return nodes;
}

double sum_of(const Graph& graph) {
  double sum = 0;
  for (OpId id = 0; id < graph.size(); ++id) {
    const OpFigures& figures = *graph.figures(id);
    sum += figures.forward_s + figures.backward_input_s + figures.backward_weight_s;
  }
  const auto* split = std::get_if<SplitModel>(&graph.carried()->extra);
  return split == nullptr ? sum : sum / split->accelerators;
}

TEST_P(PublishedWorkload, HasTheNodesAndSumsOfTheTable) {
  const Imported imported = load_it();
  EXPECT_EQ(nodes_of(imported.graph), GetParam().nodes);
  EXPECT_NEAR(sum_of(imported.graph), GetParam().sum, 5.1e-4);
}

TEST_P(PublishedWorkload, ReadsBackAsAGraphFile) {
  const Imported imported = load_it();
  for (const GraphForm form : {GraphForm::yaml, GraphForm::json}) {
    const GraphFile again = read_graph_file(write_graph_file(imported.graph, imported.batch, form), "again");
    EXPECT_EQ(again.graph.digest(), imported.graph.digest());
    EXPECT_TRUE(*again.graph.carried() == *imported.graph.carried());
    EXPECT_EQ(again.batch, imported.batch);
  }
}

INSTANTIATE_TEST_SUITE_P(Published, PublishedWorkload, testing::ValuesIn(workloads()), [](const auto& row) {
  std::string name = row.param.file;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

TEST(PublishedWorkloads, SplitFilesCarryTheirMachine) {
  const auto folder = samples::workloads();
  if (!folder) GTEST_SKIP() << "no folder of published workloads; set MILLRACE_WORKLOADS";
  const Imported gnmt = load(*folder / "dnn-partitioning/layer/gnmt_training.json");
  const auto& split = std::get<SplitModel>(gnmt.graph.carried()->extra);
  EXPECT_EQ(gnmt.graph.size(), 96);
  EXPECT_EQ(split.accelerators, 6);
  EXPECT_EQ(split.cpus, 1);
  EXPECT_EQ(split.memory_bytes, 17185374208.0);
  const Imported bert = load(*folder / "piper/bert32a100.json");
  EXPECT_EQ(bert.batch, 1920);
  EXPECT_EQ(load(*folder / "piper/resnet.json").batch, 7680);
  const Imported vgg = load(*folder / "dapple/vgg-19-pbs-32.txt");
  EXPECT_EQ(std::get<LayerProfile>(vgg.graph.carried()->extra).profile_batch, 32);
}

}  // namespace
}  // namespace millrace::import
