// `cluster:` in an experiment: where it is looked up, what --set changes, and the way back to text.
#include <gmock/gmock.h>

#include "app/experiment.h"
#include "tests/app/experiment_file.h"

namespace millrace::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const char* const kTwoNodes =
    "name: pair\ndevices: {d: {flops: {fp32: 1 TFLOP/s}, memory: 1 GiB}}\n"
    "nodes: [{count: 2, devices: [d]}]\nnetwork: {bandwidth: 25 Gb/s}\n";

TEST(ClusterSection, IsLocalUnlessSaid) {
  for (const char* more : {"", "cluster: local\n"}) {
    const Experiment e = ExperimentFile(small(more)).read();
    EXPECT_FALSE(e.cluster.described || e.cluster.carried);
    EXPECT_THAT(e.effective, HasSubstr("cluster: local\n"));
  }
}

TEST(ClusterSection, AFileIsLookedUpBesideTheExperiment) {
  const ExperimentFile file(small("cluster: c.yaml\n"));
  std::ofstream(file.folder() / "c.yaml") << kTwoNodes;
  const Experiment e = file.read();
  ASSERT_TRUE(e.cluster.described);
  EXPECT_EQ(e.cluster.described->name(), "pair");
  EXPECT_EQ(e.cluster.described->size(), 2);
}

TEST(ClusterSection, EffectiveTextHoldsTheClusterItself) {
  // Other ranks read the effective text: they need no file.
  std::string effective;
  {
    const ExperimentFile file(small("cluster: c.yaml\n"));
    std::ofstream(file.folder() / "c.yaml") << kTwoNodes;
    effective = file.read().effective;
  }
  const Experiment again = experiment_from_text(effective);
  ASSERT_TRUE(again.cluster.described);
  EXPECT_EQ(again.cluster.described->network().link.bandwidth.value(), 3.125e9);
  EXPECT_THAT(effective, AllOf(HasSubstr("bandwidth: 3125000000 B/s"), HasSubstr("memory: 1073741824 B")));
}

TEST(ClusterSection, EffectiveTextReadsBackAsItself) {
  for (const char* cluster :
       {"{flat: {devices: 4, bandwidth: 1 GB/s, latency: 2 us}}", "model", "{model: {}, memory: 2 GiB}",
        "{flat: {devices: 4, bandwidth: unlimited}, speeds: [1, 0.8, 0.8, 0.6]}",
        "{model: {}, devices: 8, bandwidth: unlimited}",
        "{levels: [{count: 2, bandwidth: 3 GB/s}, {count: 2, bandwidth: 2 GB/s}, {count: 2, bandwidth: 1 GB/s}]}"}) {
    const Experiment e = ExperimentFile(small("cluster: " + std::string(cluster) + "\n")).read();
    const Experiment again = ExperimentFile(e.effective).read();
    EXPECT_EQ(again.effective, e.effective);
    EXPECT_EQ(again.cluster.described, e.cluster.described) << cluster;
    EXPECT_EQ(again.cluster.carried, e.cluster.carried) << cluster;
  }
}

TEST(ClusterSection, SetChangesWhatAFileCarries) {
  for (const char* more : {"cluster: model\n", "cluster: {model: {}, devices: 2}\n"}) {
    const Experiment e =
        ExperimentFile(small(more)).read({"cluster.devices=8", "cluster.memory=8 GiB", "cluster.bandwidth=25 GiB/s"});
    ASSERT_TRUE(e.cluster.carried);
    EXPECT_EQ(e.cluster.carried->devices, 8);
    EXPECT_EQ(e.cluster.carried->memory, 8_GiB);
    EXPECT_EQ(e.cluster.carried->bandwidth->value(), 26843545600.0);
  }
  const Experiment e = ExperimentFile(small()).read({"cluster=model"});
  EXPECT_TRUE(e.cluster.carried);
}

TEST(ClusterSection, SetChangesADescribedCluster) {
  const Experiment e = ExperimentFile(small("cluster: {flat: {devices: 4, bandwidth: 1 GB/s}}\n"))
                           .read({"cluster.flat.devices=6", "cluster.flat.bandwidth=25Gb/s"});
  EXPECT_EQ(e.cluster.described->size(), 6);
  EXPECT_EQ(e.cluster.described->link(0, 1).bandwidth.value(), 3.125e9);
}

TEST(ClusterSection, FaultsOfAClusterFileCiteThatFile) {
  const ExperimentFile file(small("cluster: c.yaml\n"));
  std::ofstream(file.folder() / "c.yaml")
      << "devices: {d: {}}\nnodes: [{count: 2, devices: [d]}]\nnetwork: {bandwidth: 25}\n";
  try {
    file.read();
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("e.yaml:4:10: cluster:"), HasSubstr("c.yaml:3:22: network.bandwidth"),
                                    HasSubstr("the unit is missing")));
  }
}

TEST(ClusterSection, WhatIsWrongIsNamed) {
  EXPECT_THAT(refusal(small("cluster: locl\n")),
              AllOf(HasSubstr("no such file 'locl'"),
                    HasSubstr("allowed: local, model, a cluster file, a map, or one that ships: ")));
  EXPECT_THAT(refusal(small("cluster: v100x9\n")),
              AllOf(HasSubstr("v100x4-p100x4"), HasSubstr("millrace clusters"), HasSubstr("did you mean 'v100x4'?")));
  EXPECT_THAT(refusal(small("cluster: {flat: {devices: 4, bandwidth: 25}}\n")),
              HasSubstr("cluster.flat.bandwidth: found '25'"));
  EXPECT_THAT(refusal(small("cluster: {model: {}, device: 4}\n")), HasSubstr("'device' (did you mean 'devices'?)"));
  EXPECT_THAT(refusal(small("cluster: {model: {x: 1}}\n")), HasSubstr("cluster.model.x: unknown key"));
  EXPECT_THAT(refusal(small("cluster: {model: {}, devices: 0}\n")), HasSubstr("cluster.devices"));
  EXPECT_THAT(refusal(small("cluster: [1]\n")), HasSubstr("cluster:"));
  EXPECT_THAT(refusal(small(), {"cluster.devices=4"}), HasSubstr("a cluster needs one of"));
  // Nothing else is hidden by it.
  EXPECT_THAT(refusal(small("cluster: locl\nsed: 1\n")), HasSubstr("'sed' (did you mean 'seed'?)"));
}

TEST(ClusterSection, ClustersThatShipAreKnownByName) {
  // The tests run from the build folder: the name is found above the program.
  const Experiment e = ExperimentFile(small("cluster: v100x8-4nodes\n")).read();
  ASSERT_TRUE(e.cluster.described);
  EXPECT_EQ(e.cluster.described->size(), 32);
  EXPECT_EQ(e.cluster.described->nodes().size(), 4U);
}

TEST(PlanSection, RecomputeAndOrder) {
  EXPECT_EQ(ExperimentFile(small()).read().plan.recompute, plan::Recompute::none);
  EXPECT_EQ(ExperimentFile(small("plan: {recompute: auto}\n")).read().plan.recompute, plan::Recompute::automatic);
  const Experiment all = ExperimentFile(small("plan: {recompute: all}\n")).read();
  EXPECT_EQ(all.plan.recompute, plan::Recompute::all);
  EXPECT_EQ(experiment_from_text(all.effective).plan.recompute, plan::Recompute::all);
  EXPECT_THAT(refusal(small("plan: {recompute: some}\n")), HasSubstr("none, all, auto"));
  EXPECT_EQ(ExperimentFile(small("plan: {order: cluster}\n")).read().plan.order, "cluster");
  EXPECT_THAT(refusal(small("plan: {order: clustr}\n")), HasSubstr("topological, cluster, best"));
}

}  // namespace
}  // namespace millrace::app
