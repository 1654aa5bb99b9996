// The trace as a reader of the format sees it: valid JSON, integers, slices that nest, flows with both ends.
#include "record/chrome_trace.h"

#include <map>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "sim/simulate.h"
#include "tests/program/networks.h"

namespace millrace::record {
namespace {

using nlohmann::json;

struct Traced {
  Program program;
  json document;
};

Traced traced() {
  const Graph graph = test::chain(3);
  const Plan plan = test::make_plan(graph, {{.replicas = {2, 1, 1}, .micro_batches = 4}});
  Traced out{test::make_program(graph, plan, 8), {}};
  sim::SimCosts costs = sim::zero_costs();
  costs.compute = [](const sim::Piece& piece) { return Seconds(piece.kind == InstructionKind::forward ? 0.1 : 0.2); };
  costs.transfer = [](Bytes, int, int) { return Seconds(0.03); };
  costs.collective = [](InstructionKind, Bytes, std::span<const int>) { return Seconds(0.3); };
  const sim::Simulation run = sim::simulate(graph, out.program, costs, {.iterations = 2});
  const TraceCounter counter{1, "memory", {{Seconds(0), {{"weights", 5}}}, {Seconds(0.1), {{"weights", 7}}}}};
  out.document = json::parse(chrome_trace(out.program, run.timeline, "a \"title\"", {counter}));
  return out;
}

TEST(ChromeTrace, NumbersOfProcessesThreadsAndFlowsAreIntegers) {
  const Traced trace = traced();
  for (const json& event : trace.document.at("traceEvents")) {
    EXPECT_TRUE(event.at("pid").is_number_integer()) << event;
    EXPECT_TRUE(event.at("tid").is_number_integer()) << event;
    EXPECT_TRUE(!event.contains("id") || event.at("id").is_number_integer()) << event;
    EXPECT_TRUE(event.at("ph") == "M" || event.at("ts").get<double>() >= 0) << event;
  }
  EXPECT_EQ(trace.document.at("otherData").at("title"), "a \"title\"");
}

TEST(ChromeTrace, SlicesOfAThreadFollowEachOther) {
  const Traced trace = traced();
  std::map<std::pair<int, int>, double> free;  // by process and thread: when the last slice has ended
  std::size_t slices = 0;
  for (const json& event : trace.document.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++slices;
    const double start = event.at("ts"), duration = event.at("dur");
    double& end = free[{event.at("pid"), event.at("tid")}];
    EXPECT_GE(duration, 0);
    EXPECT_GE(start, end - 1e-6) << event;
    end = start + duration;
  }
  std::size_t instructions = 0;
  for (const RankProgram& rank : trace.program.ranks) instructions += rank.instructions.size();
  EXPECT_EQ(slices, 2 * instructions);
}

TEST(ChromeTrace, FlowsLeadFromSlicesToSlices) {
  const Traced trace = traced();
  std::map<int, std::vector<json>> flows;
  const auto inside_a_slice = [&](const json& flow) {
    for (const json& event : trace.document.at("traceEvents")) {
      if (event.at("ph") != "X" || event.at("pid") != flow.at("pid") || event.at("tid") != flow.at("tid")) continue;
      const double at = flow.at("ts"), start = event.at("ts"), duration = event.at("dur");
      if (start <= at && at <= start + duration + 1e-6) return true;
    }
    return false;
  };
  for (const json& event : trace.document.at("traceEvents")) {
    if (event.at("ph") == "s" || event.at("ph") == "f") flows[event.at("id")].push_back(event);
  }
  EXPECT_EQ(flows.size(), 2 * trace.program.transfers.size());
  for (const auto& [id, ends] : flows) {
    ASSERT_EQ(ends.size(), 2u);
    const json& from = ends[0].at("ph") == "s" ? ends[0] : ends[1];
    const json& to = ends[0].at("ph") == "s" ? ends[1] : ends[0];
    EXPECT_EQ(to.at("ph"), "f");
    EXPECT_LE(from.at("ts").get<double>(), to.at("ts").get<double>());
    EXPECT_NE(from.at("pid"), to.at("pid"));
    EXPECT_TRUE(inside_a_slice(from)) << from;
    EXPECT_TRUE(inside_a_slice(to)) << to;
  }
}

TEST(ChromeTrace, CountersHaveTheirValues) {
  std::vector<int> weights;
  const Traced trace = traced();
  for (const json& event : trace.document.at("traceEvents")) {
    if (event.at("ph") == "C") weights.push_back(event.at("args").at("weights"));
  }
  EXPECT_THAT(weights, testing::ElementsAre(5, 7));
}

}  // namespace
}  // namespace millrace::record
