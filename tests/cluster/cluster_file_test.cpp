// Cluster files: the long form and the short ones, what is refused and where, and the way back to text.
#include "cluster/cluster_file.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>

#include "cluster/local.h"
#include "config/document.h"
#include "config/emit.h"

namespace millrace::cluster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::optional<Cluster> read(const std::string& text, config::Problems& problems) {
  const config::Node root = config::load_text(text, config::file_source("c.yaml"), problems);
  return read_cluster(config::Field(root, "cluster", problems), "unnamed");
}

Cluster cluster_of(const std::string& text) {
  config::Problems problems;
  const auto cluster = read(text, problems);
  EXPECT_EQ(problems.text(), "");
  return cluster.value_or(local_cluster(1));
}

std::string refusal(const std::string& text) {
  config::Problems problems;
  read(text, problems);
  return problems.text();
}

std::string again(const Cluster& cluster) { return config::to_yaml(to_node(cluster)); }

const char* const kMixed =
    "name: 4x V100 + 2x P100\n"
    "devices:\n"
    "  v100: {flops: {fp32: 15.7 TFLOP/s, bf16: 15.7 TFLOP/s}, memory: 16 GiB, bandwidth: 900 GB/s,"
    " efficiency: {conv: 0.6, matmul: 0.7}}\n"
    "  p100: {flops: {fp32: 9.3 TFLOP/s}, memory: 8 GiB, speed: 0.5, launch: 5 us}\n"
    "nodes:\n"
    "  - {count: 2, devices: [v100, v100], link: {bandwidth: 25 GB/s, latency: 10 us}}\n"
    "  - {devices: [p100, p100], link: {bandwidth: 12 GB/s}}\n"
    "network: {bandwidth: 25 Gb/s, latency: 30 us, oversubscription: 2.0}\n";

TEST(ClusterFile, LongFormTakesEveryFigureInItsUnit) {
  const Cluster c = cluster_of(kMixed);
  EXPECT_EQ(c.name(), "4x V100 + 2x P100");
  EXPECT_EQ(c.kind(), Kind::described);
  ASSERT_EQ(c.size(), 6);
  ASSERT_EQ(c.nodes().size(), 3U);
  EXPECT_EQ(c.device(3).name, "v100");
  EXPECT_EQ(c.device(4).name, "p100");
  EXPECT_EQ(c.node_of(3), 1);
  EXPECT_EQ(c.node_of(4), 2);
  EXPECT_EQ(c.device(0).peak("bf16").value(), 15.7e12);
  EXPECT_EQ(c.device(0).memory, Bytes(std::int64_t{16} << 30));
  EXPECT_EQ(c.device(0).bandwidth.value(), 9e11);
  EXPECT_EQ(c.device(0).reached("conv"), 0.6);
  EXPECT_EQ(c.device(0).reached("other"), 1.0);
  EXPECT_EQ(c.device(0).speed, 1.0);
  EXPECT_EQ(c.device(4).speed, 0.5);
  EXPECT_EQ(c.device(4).launch, Seconds(5e-6));
  EXPECT_TRUE(std::isinf(c.device(4).bandwidth.value()));
  // REPORTS P16: bytes and bits are told apart.
  EXPECT_EQ(c.link(0, 1), (Link{BytesPerSecond(2.5e10), Seconds(1e-5)}));
  EXPECT_EQ(c.network().link.bandwidth.value(), 3.125e9);
  EXPECT_EQ(c.link(0, 2), (Link{BytesPerSecond(3.125e9 / 2), Seconds(3e-5)}));
  EXPECT_EQ(c.link(4, 5), (Link{BytesPerSecond(1.2e10), Seconds(0)}));
}

TEST(ClusterFile, FlatIsOneNodeOfCores) {
  const Cluster c = cluster_of("flat: {devices: 4, bandwidth: 1 GB/s, latency: 2 us}\n");
  EXPECT_EQ(c.name(), "unnamed");
  EXPECT_EQ(c.size(), 4);
  EXPECT_EQ(c.nodes().size(), 1U);
  EXPECT_EQ(c.link(0, 3), (Link{BytesPerSecond(1e9), Seconds(2e-6)}));
  EXPECT_FALSE(c.device(0).memory);
  EXPECT_EQ(c.device(0).peak("fp32"), kCoreFlopsFp32);
}

TEST(ClusterFile, UnlimitedBandwidthTakesNoTime) {
  const Cluster c = cluster_of("flat: {devices: 2, bandwidth: unlimited}\n");
  EXPECT_EQ(c.link(0, 1).time(Bytes(std::int64_t{1} << 40)), Seconds(0));
}

TEST(ClusterFile, SpeedsScaleTheDevicesOfAShortForm) {
  for (const char* text : {"flat: {devices: 4, bandwidth: unlimited}\nspeeds: [1, 0.8, 0.8, 0.6]\n",
                           "flat: {devices: 4, bandwidth: unlimited, speeds: [1, 0.8, 0.8, 0.6]}\n"}) {
    const Cluster c = cluster_of(text);
    std::vector<double> speeds;
    for (const Device& device : c.devices()) speeds.push_back(device.speed);
    EXPECT_THAT(speeds, ElementsAre(1, 0.8, 0.8, 0.6));
  }
}

TEST(ClusterFile, LevelsAreInnermostFirst) {
  const Cluster c = cluster_of("levels: [{count: 4, bandwidth: 10 GB/s}, {count: 3, bandwidth: 1.25 GB/s}]\n");
  EXPECT_EQ(c.size(), 12);
  EXPECT_EQ(c.nodes().size(), 3U);
  EXPECT_EQ(c.link(0, 3).bandwidth.value(), 1e10);
  EXPECT_EQ(c.link(3, 4).bandwidth.value(), 1.25e9);
  EXPECT_TRUE(c.network().tiers.empty());
}

TEST(ClusterFile, MoreThanTwoLevelsMeetAtTheSmallestThatHoldsBoth) {
  const Cluster c = cluster_of(
      "levels: [{count: 2, bandwidth: 8 GB/s}, {count: 3, bandwidth: 4 GB/s}, {count: 2, bandwidth: 2 GB/s}, "
      "{count: 5, bandwidth: 1 GB/s, latency: 9 us}]\n");
  EXPECT_EQ(c.size(), 60);
  EXPECT_EQ(c.nodes().size(), 30U);
  const auto speed = [&](int a, int b) { return c.link(a, b).bandwidth.value(); };
  EXPECT_EQ(speed(0, 1), 8e9);
  EXPECT_EQ(speed(1, 2), 4e9);
  EXPECT_EQ(speed(0, 5), 4e9);
  EXPECT_EQ(speed(5, 6), 2e9);
  EXPECT_EQ(speed(0, 11), 2e9);
  EXPECT_EQ(speed(11, 12), 1e9);
  EXPECT_EQ(speed(59, 0), 1e9);
  EXPECT_EQ(c.link(59, 0).latency, Seconds(9e-6));
}

TEST(ClusterFile, ALevelOfOneAddsNothing) {
  const Cluster c = cluster_of("levels: [{count: 1, bandwidth: 8 GB/s}, {count: 3, bandwidth: 4 GB/s}]\n");
  EXPECT_EQ(c.nodes().size(), 3U);
  EXPECT_EQ(c.link(0, 2).bandwidth.value(), 4e9);
  const Cluster one = cluster_of("levels: [{count: 2, bandwidth: 8 GB/s}, {count: 1, bandwidth: 4 GB/s}]\n");
  EXPECT_EQ(one.nodes().size(), 1U);
}

TEST(ClusterFile, TextReadsBackAsTheSameCluster) {
  for (const std::string& text : std::vector<std::string>{
           kMixed, "flat: {devices: 3, bandwidth: 1 GB/s, latency: 2 us}\nspeeds: [1, 0.5, 0.3333333333333333]\n",
           "levels: [{count: 2, bandwidth: unlimited}, {count: 3, bandwidth: 4 GB/s}, {count: 2, bandwidth: 2 GB/s}, "
           "{count: 5, bandwidth: 1 GB/s, latency: 9 us}]\n",
           "devices: {d: {}}\nnodes: [{name: left, count: 2, devices: [d]}, {name: right, devices: [d]}]\n"
           "network: {bandwidth: 1 GB/s}\n"}) {
    const Cluster c = cluster_of(text);
    EXPECT_EQ(cluster_of(again(c)), c) << again(c);
    EXPECT_EQ(again(cluster_of(again(c))), again(c));
  }
}

TEST(ClusterFile, AllFaultsAreToldWithTheirPlace) {
  const std::string told = refusal(
      "devices:\n"
      "  v100: {flops: {fp32: 15.7 TFLOPS, fp8: 1 TFLOP/s}, memory: 16, bandwith: 900 GB/s}\n"
      "  p100: {efficiency: {conv: 1.5}}\n"
      "nodes:\n"
      "  - {count: 0, devices: [v100, v10], link: {bandwidth: 25, latency: 10}}\n"
      "  - {devices: [p100, p100]}\n"
      "network: {bandwidth: 0 GB/s, oversubscription: 0.5}\n");
  for (const char* part :
       {"c.yaml:2:24: cluster.devices.v100.flops.fp32", "unknown key 'fp8'", "c.yaml:2:62: cluster.devices.v100.memory",
        "the unit is missing", "'bandwith' (did you mean 'bandwidth'?)", "cluster.devices.p100.efficiency.conv",
        "c.yaml:5:13: cluster.nodes[0].count", "unknown device 'v10' (did you mean 'v100'?)",
        "cluster.nodes[0].link.bandwidth: found '25'", "cluster.nodes[0].link.latency: found '10'",
        "cluster.nodes[1].link: missing", "cluster.network.bandwidth: found 0", "cluster.network.oversubscription"}) {
    EXPECT_THAT(told, HasSubstr(part));
  }
}

TEST(ClusterFile, WhatIsMissingIsNamed) {
  EXPECT_THAT(refusal("name: x\n"), HasSubstr("nodes (with devices), flat, levels"));
  EXPECT_THAT(refusal("devices: 8\n"), HasSubstr("nodes (with devices), flat, levels"));
  EXPECT_THAT(refusal("nodes: [{devices: [d]}]\n"), HasSubstr("cluster.devices: missing"));
  EXPECT_THAT(refusal("devices: {d: {}}\nnodes: []\n"), HasSubstr("at least one node"));
  EXPECT_THAT(refusal("devices: {d: {}}\nnodes: [{devices: []}]\n"), HasSubstr("at least one device"));
  EXPECT_THAT(refusal("devices: {d: {}}\nnodes: [{count: 2, devices: [d]}]\n"),
              AllOf(HasSubstr("cluster.network: missing: 2 nodes"), Not(HasSubstr("link"))));
  EXPECT_THAT(refusal("flat: {bandwidth: 1 GB/s}\n"), HasSubstr("cluster.flat.devices: missing"));
  EXPECT_THAT(refusal("flat: {devices: 2}\n"), HasSubstr("cluster.flat.bandwidth: missing"));
}

TEST(ClusterFile, ShortFormsThatContradictThemselvesAreRefused) {
  EXPECT_THAT(refusal("flat: {devices: 2, bandwidth: 1 GB/s}\nspeeds: [1, 1, 1]\n"),
              HasSubstr("3 speeds for 2 devices"));
  EXPECT_THAT(refusal("flat: {devices: 2, bandwidth: 1 GB/s}\nspeeds: [1, 0]\n"), HasSubstr("cluster.speeds[1]"));
  EXPECT_THAT(refusal("flat: {devices: 1, bandwidth: 1 GB/s, speeds: [1]}\nspeeds: [1]\n"), HasSubstr("twice"));
  EXPECT_THAT(refusal("levels: []\n"), HasSubstr("at least one level"));
  EXPECT_THAT(refusal("flat: {devices: 2, bandwidth: 1 GB/s}\nlevels: []\n"), HasSubstr("not both"));
  EXPECT_THAT(refusal("levels: [{count: 1000000, bandwidth: 1 GB/s}, {count: 1000000, bandwidth: 1 GB/s}]\n"),
              HasSubstr("more than 1048576 devices"));
  EXPECT_THAT(refusal("flat: {devices: 2, bandwidth: 1 GB/s}\nnodes: []\n"), HasSubstr("unknown key 'nodes'"));
}

TEST(ClusterFile, GroupsOfNodesMustNest) {
  const std::string start =
      "devices: {d: {}}\nnodes: [{count: 12, devices: [d]}]\nnetwork: {bandwidth: 1 GB/s, groups: ";
  EXPECT_THAT(refusal(start + "[{nodes: 5, bandwidth: 2 GB/s}]}\n"), HasSubstr("groups of 5 nodes"));
  EXPECT_THAT(refusal(start + "[{nodes: 4, bandwidth: 2 GB/s}, {nodes: 6, bandwidth: 2 GB/s}]}\n"),
              HasSubstr("groups of 6 nodes do not divide the 12 nodes into groups of 4"));
  EXPECT_EQ(refusal(start + "[{nodes: 2, bandwidth: 3 GB/s}, {nodes: 6, bandwidth: 2 GB/s}]}\n"), "");
}

}  // namespace
}  // namespace millrace::cluster
