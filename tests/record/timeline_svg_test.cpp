// The picture: valid XML, a box for each computation, words that survive escaping, and a renderer that takes it.
#include "record/timeline_svg.h"

#include <cstdlib>
#include <fstream>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/registry.h"
#include "program/lowering.h"
#include "program/stage_dag.h"
#include "schedules/registry.h"
#include "tests/record/well_formed.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::record {
namespace {

using testing::check_xml;
using ::testing::HasSubstr;
using testing::XmlCheck;

// A pipeline of `stages` on a small network.
Program pipeline(int stages, std::int64_t micro_batches) {
  const Graph graph = models::make("mlp", {{"inputs", "4"}, {"hidden", "[4, 4]"}, {"classes", "2"}});
  Plan plan;
  plan.pipelines.emplace_back();
  plan.pipelines[0].micro_batches = micro_batches;
  const auto ops = static_cast<int>(graph.size());
  for (int s = 0; s < stages; ++s) {
    Stage stage;
    for (int op = ops * s / stages; op < ops * (s + 1) / stages; ++op) stage.ops.push_back(op);
    stage.devices = {s};
    stage.shares = {1.0};
    plan.pipelines[0].stages.push_back(stage);
  }
  return lower(graph, plan, schedules::compute_order(plan, make_stage_dag(graph, plan)), 2 * micro_batches);
}

// Every instruction takes 3 s, one after the other.
Timeline one_after_the_other(const Program& program) {
  Timeline timeline;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    double at = 0;
    std::int32_t position = 0;
    for (const Instruction& instruction : program.ranks[rank].instructions) {
      timeline.rows.push_back({static_cast<std::int32_t>(rank), position++, instruction, Seconds(at), Seconds(at + 3)});
      at += 3;
    }
  }
  return timeline;
}

bool is_drawn(InstructionKind kind) {
  return kind == InstructionKind::forward || kind == InstructionKind::backward ||
         kind == InstructionKind::reduce_gradients || kind == InstructionKind::update_weights;
}

int boxes(const std::string& svg) {
  const XmlCheck xml = check_xml(svg);
  EXPECT_EQ(xml.fault, "");
  return xml.elements.at("rect");
}

TEST(TimelineSvg, HasOneBoxForEachComputation) {
  for (const int stages : {1, 3}) {
    const Program program = pipeline(stages, 4);
    const Timeline timeline = one_after_the_other(program);
    const auto drawn = std::count_if(timeline.rows.begin(), timeline.rows.end(),
                                     [](const TimelineRow& row) { return is_drawn(row.instruction.kind); });
    ASSERT_GE(drawn, stages * 8);
    const int frame = boxes(timeline_svg(program, {}, {}));
    EXPECT_EQ(boxes(timeline_svg(program, timeline, {})) - frame, drawn);
  }
}

TEST(TimelineSvg, LeavesOutWhatTakesNoTime) {
  const Program program = pipeline(2, 2);
  Timeline timeline = one_after_the_other(program);
  const int all = boxes(timeline_svg(program, timeline, {}));
  for (TimelineRow& row : timeline.rows) {
    if (row.instruction.kind == InstructionKind::update_weights) row.end = row.start;
  }
  const auto updates = std::count_if(timeline.rows.begin(), timeline.rows.end(), [](const TimelineRow& row) {
    return row.instruction.kind == InstructionKind::update_weights;
  });
  ASSERT_GT(updates, 0);
  EXPECT_EQ(boxes(timeline_svg(program, timeline, {})), all - updates);
}

TEST(TimelineSvg, TitleFooterAndLanesAreReadable) {
  const Program program = pipeline(2, 2);
  const std::string svg = timeline_svg(program, one_after_the_other(program), {"a < b & \"c\" > d", "bubble 27 %"});
  const XmlCheck xml = check_xml(svg);
  EXPECT_EQ(xml.fault, "");
  EXPECT_THAT(xml.text, HasSubstr("a < b & \"c\" > d"));
  EXPECT_THAT(xml.text, HasSubstr("bubble 27 %"));
  EXPECT_THAT(xml.text, HasSubstr("rank 0 · p0 s0"));
  EXPECT_THAT(xml.text, HasSubstr("rank 1 · p0 s1"));
  for (const char* kind : {"forward", "backward", "all-reduce", "update"}) EXPECT_THAT(xml.text, HasSubstr(kind));
}

TEST(TimelineSvg, TinyAndHugeSpansHaveAFiniteAxis) {
  const Program program = pipeline(2, 2);
  for (const double scale : {1e-9, 1e9}) {
    Timeline timeline = one_after_the_other(program);
    for (TimelineRow& row : timeline.rows) {
      row.start = row.start * scale;
      row.end = row.end * scale;
    }
    const std::string svg = timeline_svg(program, timeline, {});
    const XmlCheck xml = check_xml(svg);
    EXPECT_EQ(xml.fault, "");
    EXPECT_GE(xml.elements.at("line"), 2);
    EXPECT_LE(xml.elements.at("line"), 12);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
  }
}

TEST(TimelineSvg, ARendererTakesIt) {
  const storage::TemporaryFolder folder;
  const Program program = pipeline(3, 4);
  std::ofstream(folder / "t.svg") << timeline_svg(program, one_after_the_other(program), {"rendered", "footer"});
  const std::string command = "rsvg-convert " + (folder / "t.svg").string() + " -o " + (folder / "t.png").string();
  ASSERT_EQ(std::system(command.c_str()), 0) << "rsvg-convert is of librsvg2-bin (scripts/dependencies.sh --tests)";
  std::ifstream png(folder / "t.png", std::ios::binary);
  std::string magic(8, '\0');
  png.read(magic.data(), 8);
  EXPECT_EQ(magic, "\x89PNG\r\n\x1a\n");
}

TEST(WellFormed, FindsWhatIsNot) {
  EXPECT_EQ(check_xml("<a b=\"1\"><c/>x &amp; y</a>").fault, "");
  for (const char* bad : {"<a>", "<a></b>", "<a/><b/>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>", "<a>&nbsp;</a>",
                          "<a>x & y</a>", "<a>x > y</a>", "x", ""}) {
    EXPECT_NE(check_xml(bad).fault, "") << bad;
  }
}

}  // namespace
}  // namespace millrace::record
