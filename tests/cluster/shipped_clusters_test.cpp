// Every file of experiments/clusters is read, says where its figures are from, and has few constants that were fitted.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "cluster/cluster_file.h"
#include "config/problems.h"

namespace millrace::cluster {
namespace {

using ::testing::ContainsRegex;

std::vector<std::filesystem::path> shipped() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(MILLRACE_SOURCE_DIR "/experiments/clusters")) {
    files.push_back(entry.path());
  }
  return files;
}

Cluster load(const std::filesystem::path& file) {
  config::Problems problems;
  std::optional<Cluster> cluster = load_cluster(file, problems);
  problems.throw_if_any();
  return std::move(cluster.value());
}

// The comment before the first key, as one line.
std::string note_of(const std::filesystem::path& file) {
  std::ifstream text(file);
  std::string line, note;
  while (std::getline(text, line) && line.starts_with('#')) note += line.substr(1);
  return note;
}

TEST(ShippedClusters, AreRead) {
  EXPECT_GE(shipped().size(), 16U);
  for (const auto& file : shipped()) {
    EXPECT_EQ(file.extension(), ".yaml") << file;
    EXPECT_GT(load(file).size(), 1) << file;
  }
}

TEST(ShippedClusters, SayWhereTheirFiguresAreFrom) {
  for (const auto& file : shipped()) {
    const std::string note = note_of(file);
    const Cluster cluster = load(file);
    const bool plain = cluster.emulated() || cluster.device(0).name == kPlainDevice;  // of no real machine
    if (plain) {
      EXPECT_FALSE(note.empty()) << file;
    } else {
      EXPECT_THAT(note, ContainsRegex("(NVIDIA|maker)[^.]*data sheets?, 20[0-9][0-9]")) << file;
    }
  }
}

TEST(ShippedClusters, HaveFewConstants) {
  const std::set<std::string> classes{"conv", "matmul", "memory", "attention", "fused_attention"};
  for (const auto& file : shipped()) {
    const Cluster cluster = load(file);
    for (int d = 0; d < cluster.size(); ++d) {
      const Device& device = cluster.device(d);
      EXPECT_LE(device.efficiency.size() + device.ramp.size(), 10U) << file;
      for (const auto& [kind, part] : device.efficiency) {
        EXPECT_TRUE(classes.contains(kind)) << file << " " << kind;
        EXPECT_TRUE(part > 0 && part <= 1) << file << " " << kind;
      }
      for (const auto& [kind, time] : device.ramp) {
        EXPECT_TRUE(classes.contains(kind)) << file << " " << kind;
        EXPECT_TRUE(time > Seconds(0) && time < Seconds(1e-3)) << file << " " << kind;
      }
    }
    // Of a cluster: dispatch and spread of the host, the latency of a collective's step, the part of the network that
    // is reached. All nodes of a file are alike in the first three.
    std::set<double> latencies;
    for (const Node& node : cluster.nodes()) latencies.insert(node.link.latency.value());
    EXPECT_EQ(latencies.size(), 1U) << file;
    EXPECT_TRUE(cluster.host().spread >= 0 && cluster.host().spread < 0.1) << file;
    EXPECT_TRUE(cluster.host().dispatch < Seconds(1e-3)) << file;
  }
}

}  // namespace
}  // namespace millrace::cluster
