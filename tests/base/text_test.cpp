// Nearest names, globs and formats.
#include "base/text.h"

#include <gtest/gtest.h>

#include "base/count.h"

namespace millrace {
namespace {

TEST(NearestName, FindsSlipsAndLeavesStrangersAlone) {
  const std::vector<std::string> names{"micro_batches", "pipelines", "dp"};
  EXPECT_EQ(nearest_name("mirco_batches", names), "micro_batches");
  EXPECT_EQ(nearest_name("dpp", names), "dp");
  EXPECT_EQ(nearest_name("learning_rate", names), std::nullopt);
}

TEST(NearestName, KnowsBeginningsAndWordsThatLeaveLettersOut) {
  const std::vector<std::string> names{"throughput", "activation_size", "bottleneck", "parameter_size", "parameters"};
  EXPECT_EQ(nearest_name("thruput", names), "throughput");
  EXPECT_EQ(nearest_name("activat", names), "activation_size");
  EXPECT_EQ(nearest_name("bo", names), std::nullopt);
  EXPECT_EQ(nearest_name("param", names), std::nullopt);  // of two
  EXPECT_EQ(nearest_name("zz", std::vector<std::string>{"a"}), std::nullopt);
}

TEST(Counted, TheNounFollowsTheNumber) {
  EXPECT_EQ(counted(1, "stage"), "1 stage");
  EXPECT_EQ(counted(0, "stage"), "0 stages");
  EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
}

TEST(UnknownName, ListsWhatIsValid) {
  const std::vector<std::string> names{"dp", "exact"};
  EXPECT_EQ(unknown_name("partitioner", "dpp", names),
            "unknown partitioner 'dpp' (did you mean 'dp'?); valid: dp, exact");
}

TEST(Glob, MatchesTheWholeNameAcrossDots) {
  EXPECT_TRUE(matches_glob("layer1.*", "layer1.0.conv1"));
  EXPECT_TRUE(matches_glob("*.weight", "blocks.0.mlp.up.weight"));
  EXPECT_TRUE(matches_glob("blocks.*.mlp.*", "blocks.11.mlp.gelu"));
  EXPECT_FALSE(matches_glob("layer1", "layer1.0"));
  EXPECT_FALSE(matches_glob("layer?.x", "layer10.x"));
  EXPECT_TRUE(matches_glob("*", ""));
}

TEST(Format, PicksAReadableUnit) {
  EXPECT_EQ(format(Bytes(512)), "512 B");
  EXPECT_EQ(format(25_MiB), "25.0 MiB");
  EXPECT_EQ(format(Seconds(0.0123)), "12.30 ms");
  EXPECT_EQ(format(Seconds(9e8)), "15000000.0 min");
  EXPECT_EQ(format(Seconds(1e200)), "1.00e+200 s");
}

}  // namespace
}  // namespace millrace
