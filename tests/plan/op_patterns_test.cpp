// Names, ranges and globs, by INTERFACES 9.
#include "plan/op_patterns.h"

#include <gmock/gmock.h>

#include "tests/plan/table_cost.h"

namespace millrace::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Graph named(const std::vector<std::string>& names) {
  GraphBuilder builder("named");
  TensorId x = builder.input("x", {Dims{1}});
  for (const std::string& name : names) x = builder.add({.name = name, .kind = "relu", .inputs = {x}});
  return builder.build();
}

const Graph& graph() {
  static const Graph made = named({"conv1", "layer1.0.conv", "layer1.0.relu", "layer2.conv", "layer2.relu", "fc"});
  return made;
}

TEST(Patterns, NamesRangesAndGlobs) {
  const ResolvedStages stages = resolve_patterns(graph(), {{"conv1", "layer1.*"}, {"layer2.conv .. fc"}});
  EXPECT_THAT(stages.faults, IsEmpty());
  EXPECT_THAT(stages.ops[0], ElementsAre(0, 1, 2));
  EXPECT_THAT(stages.ops[1], ElementsAre(3, 4, 5));
}

TEST(Patterns, AnExactNameWinsOverAGlobOfAnotherStage) {
  const ResolvedStages stages = resolve_patterns(graph(), {{"*"}, {"fc"}});
  EXPECT_THAT(stages.faults, IsEmpty());
  EXPECT_THAT(stages.ops[0], ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(stages.ops[1], ElementsAre(5));
}

TEST(Patterns, FaultsSayWhereAndWhat) {
  const ResolvedStages stages =
      resolve_patterns(graph(), {{"conv2", "layer3.*"}, {"layer1.*", "fc .. conv1"}, {"*conv"}, {"fc", "fc"}});
  ASSERT_EQ(stages.faults.size(), 5U);
  EXPECT_THAT(stages.faults[0].text, HasSubstr("did you mean 'conv1'"));
  EXPECT_THAT(stages.faults[1].text, HasSubstr("'layer3.*' matches no operator"));
  EXPECT_THAT(stages.faults[2].text, HasSubstr("backwards"));
  EXPECT_THAT(stages.faults[3].text, HasSubstr("'layer1.0.conv' is in stage 1 already"));
  EXPECT_THAT(stages.faults[4].text, HasSubstr("'fc' is twice in this stage"));
  EXPECT_EQ(stages.faults[4].stage, 3U);
  EXPECT_EQ(stages.faults[4].item, 1U);
}

TEST(Patterns, OverlappingRangesAreTwice) {
  const ResolvedStages stages = resolve_patterns(graph(), {{"conv1 .. layer2.conv"}, {"layer2.conv .. fc"}});
  ASSERT_EQ(stages.faults.size(), 1U);
  EXPECT_THAT(stages.faults[0].text, HasSubstr("'layer2.conv'"));
}

TEST(Patterns, WritingUsesRanges) {
  EXPECT_THAT(to_patterns(graph(), {0, 2, 3, 5}), ElementsAre("conv1", "layer1.0.relu .. layer2.conv", "fc"));
  EXPECT_THAT(to_patterns(graph(), {}), IsEmpty());
}

}  // namespace
}  // namespace millrace::plan
