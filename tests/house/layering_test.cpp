// The house's walls: every include and every link agrees with the table of rooms, and the checks can fail.
#include <gmock/gmock.h>

#include "tests/house/layers.h"
#include "tests/house/rooms.h"

namespace millrace::house {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string text(const Violations& violations) {
  std::string all;
  for (const std::string& violation : violations) all += violation + "\n";
  return all;
}

Violations violations_of(const std::string& path, std::string_view code) {
  return include_violations(source_file(path, code));
}

TEST(Layering, EveryIncludeAgreesWithTheTable) {
  const std::vector<SourceFile> sources = product_sources();
  ASSERT_FALSE(sources.empty());
  Violations all;
  for (const SourceFile& file : sources) {
    for (const std::string& violation : include_violations(file)) all.push_back(violation);
  }
  EXPECT_THAT(all, IsEmpty()) << text(all);
}

TEST(Layering, EveryLinkAgreesWithTheTable) {
  const auto targets = room_targets(read_tree({"src", "partitioners", "schedules"}, {"CMakeLists.txt"}));
  ASSERT_FALSE(targets.empty());
  const Violations all = link_violations(targets, product_sources());
  EXPECT_THAT(all, IsEmpty()) << text(all);
}

TEST(Layering, TheTableHasNoCycle) {
  for (const Room& room : rooms()) {
    for (const std::string& other : room.may_include) {
      EXPECT_FALSE(reach(other).contains(room.name)) << room.name << " and " << other << " include each other";
    }
  }
}

TEST(Layering, ARoomReachesWhatTheRoomsItNamesReach) {
  EXPECT_THAT(reach("cost"), ElementsAre("base", "cluster", "config", "cost", "graph"));
  EXPECT_FALSE(reach("runtime").contains("partitioners"));
  EXPECT_TRUE(reach("app").contains("partitioners"));
}

TEST(Layering, AnUpwardIncludeIsNamedWithFileAndLine) {
  EXPECT_THAT(violations_of("src/graph/a.h", "// a\n#include \"base/text.h\"\n#include \"runtime/b.h\"\n"),
              ElementsAre(HasSubstr("src/graph/a.h:3: includes runtime/b.h: graph may include only base, graph")));
  EXPECT_THAT(violations_of("src/graph/a.cpp", "#include \"a.h\"\n"), ElementsAre(HasSubstr("name of a room")));
  EXPECT_THAT(violations_of("src/attic/a.h", ""), ElementsAre(HasSubstr("lies in no room")));
}

TEST(Layering, OnlyPlannerAndAppSeeTheRegistries) {
  for (const Room& room : rooms()) {
    for (const std::string& registry : plugin_rooms()) {
      if (room.name == registry) continue;
      const bool sees = room.name == "planner" || room.name == "app";
      EXPECT_EQ(violations_of("src/" + room.name + "/a.cpp", "#include \"" + registry + "/registry.h\"").empty(), sees)
          << room.name << " and " << registry;
    }
  }
}

TEST(Layering, PluginsKnowNeitherEachOtherNorTheOutside) {
  EXPECT_THAT(violations_of("partitioners/dp.cpp", "#include \"partitioners/exact.h\""),
              ElementsAre(HasSubstr("common/")));
  EXPECT_THAT(violations_of("partitioners/common/a.cpp", "#include \"partitioners/dp.h\""),
              ElementsAre(HasSubstr("common/")));
  EXPECT_THAT(
      violations_of("partitioners/dp.cpp", "#include \"partitioners/dp.h\"\n#include \"partitioners/common/order.h\""),
      IsEmpty());
  EXPECT_THAT(violations_of("partitioners/registry.cpp", "#include \"partitioners/dp.h\""), IsEmpty());
  EXPECT_THAT(violations_of("schedules/gpipe.cpp", "#include \"partitioners/dp.h\""),
              ElementsAre(HasSubstr("schedules may")));
  for (const std::string header : {"mpi.h", "cuda_runtime.h", "nccl.h", "hdf5.h", "yaml-cpp/yaml.h"}) {
    for (const std::string& room : plugin_rooms()) {
      EXPECT_THAT(violations_of(room + "/a.cpp", "#include <" + header + ">"),
                  ElementsAre(HasSubstr("only these rooms")));
    }
  }
}

TEST(Layering, AWrongOrMissingLinkIsNamed) {
  const auto targets = room_targets({
      source_file("src/base/CMakeLists.txt", "millrace_room(base SOURCES a.cpp)"),
      source_file("src/graph/CMakeLists.txt",
                  "# graph\nmillrace_room(graph\n  HEADERS a.h\n  ROOMS base plan LIBRARIES x)"),
      source_file("src/plan/CMakeLists.txt", "millrace_room(plan)"),
  });
  const Violations found = link_violations(targets, {source_file("src/plan/a.h", "#include \"base/text.h\"")});
  EXPECT_THAT(found, ElementsAre(HasSubstr("graph links plan: graph may include only base, graph"),
                                 HasSubstr("src/plan/a.h:1: includes base/text.h, but plan's CMakeLists.txt")));
}

}  // namespace
}  // namespace millrace::house
