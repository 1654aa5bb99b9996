// Tables of reports: CSV, Markdown, LaTeX, scaling, published figures, comparisons.
#include <cmath>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "record/comparison.h"
#include "record/paper_table.h"
#include "record/scaling.h"
#include "record/table_text.h"
#include "tests/record/result_tables.h"

namespace millrace::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(TableText, CsvHasALineForEachCellAndNumbersInFull) {
  const DataTable table = table_of({{"dp", 1, 32, 1, 0.1}, {"a\nb", 1, 32, 1, 1, 1, "simulated", "infeasible"}});
  EXPECT_EQ(csv_text(table),
            "cell,status,reason,plan.partitioner,ranks,data.batch,repetition,partitioner,devices,batch,"
            "throughput_samples_per_s,peak_memory_bytes,kind\n"
            "id0,done,,dp,1,32,1,dp,1,32,0.1,1073741824,simulated\n"
            "id1,infeasible,\"it, \"\"broke\"\"\",a b,1,32,1,,,,,,\n");
}

TEST(TableText, MarksOfMarkdownAndLatexAreText) {
  const TextTable table{{"a_b", "n"}, {{"50 % | #1", "12"}}};
  EXPECT_EQ(markdown_text(table), "| a\\_b | n |\n|---:|---:|\n| 50 % \\| #1 | 12 |\n");
  EXPECT_THAT(latex_text(table), HasSubstr("a\\_b & n \\\\\n\\midrule\n50 \\% | \\#1 & 12 \\\\"));
}

TEST(Scaling, SpeedUpAndEfficiencyWithIntervals) {
  std::vector<TestCell> cells;
  const double speeds[][3] = {{9, 10, 11}, {18, 19, 20}};
  for (std::int64_t r = 0; r < 3; ++r) {
    cells.push_back({"dp", 1, 32, r + 1, speeds[0][r], 1, "measured"});
    cells.push_back({"dp", 2, 64, r + 1, speeds[1][r], 1, "measured"});
  }
  cells.push_back({"dp", 2, 64, 1, 100, 1, "emulated"});  // alone of its kind: no table
  const Scaling scaling = scaling_of(table_of(cells), test_axes());
  EXPECT_THAT(scaling.group_columns, ElementsAre("plan.partitioner"));
  ASSERT_EQ(scaling.rows.size(), 2U);
  const ScalingRow& two = scaling.rows[1];
  EXPECT_EQ(two.scaling, "weak");
  EXPECT_EQ(two.repetitions, 3U);
  EXPECT_DOUBLE_EQ(two.speed_up.value, 1.9);
  EXPECT_DOUBLE_EQ(two.efficiency.value, 0.95);
  // Half widths: 4.302653 / sqrt(3) each; relative errors in squares.
  const double half = 4.302653 / std::sqrt(3.0);
  EXPECT_NEAR(two.throughput.half_width, half, 1e-5);
  EXPECT_NEAR(two.speed_up.half_width, 1.9 * std::hypot(half / 19, half / 10), 1e-5);
}

TEST(Scaling, StrongWhereTheBatchStays) {
  const Scaling scaling =
      scaling_of(table_of({{"dp", 1, 32, 1, 10}, {"dp", 4, 32, 1, 30}, {"x", 4, 32, 1, 9}}), test_axes());
  ASSERT_EQ(scaling.rows.size(), 2U);
  EXPECT_EQ(scaling.rows[1].scaling, "strong");
  EXPECT_DOUBLE_EQ(scaling.rows[1].efficiency.value, 0.75);
}

// One study holds both: the batch stays, or grows with the devices.
TEST(Scaling, StrongAndWeakOfOneStudy) {
  const Scaling scaling = scaling_of(table_of({{"dp", 1, 32, 1, 10},
                                               {"dp", 2, 32, 1, 18},
                                               {"dp", 2, 64, 1, 19},
                                               {"dp", 4, 32, 1, 30},
                                               {"dp", 4, 128, 1, 36}}),
                                     test_axes());
  EXPECT_THAT(scaling.group_columns, ElementsAre("plan.partitioner", "data.batch"));
  std::vector<std::string> rows;
  for (const ScalingRow& row : scaling.rows) {
    rows.push_back(row.scaling + " " + row.group[1] + ": " + std::to_string(row.devices) + " " +
                   std::to_string(row.batch) + " " + to_text(row.efficiency.value));
  }
  EXPECT_THAT(
      rows, ElementsAre("strong 32: 1 32 1", "strong 32: 2 32 0.9", "strong 32: 4 32 0.75", "weak 32 a device: 1 32 1",
                        "weak 32 a device: 2 64 0.95", "weak 32 a device: 4 128 0.9"));
}

constexpr const char* kSheet =
    "table,row,select,baseline,metric,form,published,better,tolerance,why\n"
    "1,gain,plan.partitioner=dp,plan.partitioner=parameter_equal,throughput_samples_per_s,change,0.4,higher,0.05,\n"
    "1,memory,plan.partitioner=dp,,peak_memory_bytes,,100,lower,,smaller graphs\n"
    "1,none,plan.partitioner=broken,,throughput_samples_per_s,,5,,,\n"
    "2,efficiency,plan.partitioner=four,plan.partitioner=dp,throughput_samples_per_s,efficiency,0.9,,,\n";

TEST(Paper, JudgesOursBesideThePublished) {
  const DataTable cells = table_of({{"dp", 1, 32, 1, 1.39, 150},
                                    {"parameter_equal", 1, 32, 1, 1.0},
                                    {"broken", 1, 32, 1, 1, 1, "", "infeasible"},
                                    {"four", 4, 32, 1, 1.39 * 3.8}});
  const auto rows = paper_rows(read_published(kSheet, "sheet.csv"), cells, test_axes());
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].verdict, "reached");
  EXPECT_NEAR(*rows[0].ours, 0.39, 1e-12);
  EXPECT_EQ(rows[1].verdict, "not reached: smaller graphs");
  EXPECT_THAT(rows[2].verdict, StartsWith("no result: infeasible, it,"));
  EXPECT_NEAR(*rows[3].ours, 0.95, 1e-12);
  EXPECT_EQ(rows[3].kind, "simulated");
}

TEST(Paper, AFigureThatNobodyPublishedIsLeftBlank) {
  const auto rows =
      paper_rows(read_published("metric,published,source,why\nbatch,,no paper has it,never\n", "sheet.csv"),
                 table_of({{"dp", 1, 32}}), test_axes());
  EXPECT_EQ(rows[0].verdict, "nothing published");
  EXPECT_EQ(*rows[0].ours, 32);
  EXPECT_THAT(readable(rows).rows[0],
              ElementsAre("", "", "batch", "-", "32", "", "simulated", "nothing published", "no paper has it"));
}

TEST(Paper, RefusesWhatIsWrong) {
  const auto refusal = [](const std::string& sheet) {
    try {
      const DataTable cells = table_of({{"dp", 1}, {"x", 1}});
      paper_rows(read_published(sheet, "sheet.csv"), cells, test_axes());
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal("metrik,published\nx,1\n"), HasSubstr("did you mean 'metric'?"));
  EXPECT_THAT(refusal("metric,published\nbatch,one\n"), HasSubstr("sheet.csv:2:7: published: found 'one'"));
  EXPECT_THAT(refusal("metric,published,form\nbatch,1,ratio\n"), HasSubstr("baseline: is missing: the form is ratio"));
  EXPECT_THAT(refusal("metric,published\nbatch,1\n"), HasSubstr("means cells of different plan.partitioner"));
  EXPECT_THAT(refusal("metric,published,select\nbatch,1,plan.x=1\n"), HasSubstr("unknown column 'plan.x'"));
}

Results results_of(const std::vector<TestCell>& cells) {
  Results results;
  results.sweep = true;
  results.axes = test_axes();
  results.cells = table_of(cells);
  return results;
}

std::vector<std::string> verdicts(const std::vector<TestCell>& before, const std::vector<TestCell>& after) {
  std::vector<std::string> names;
  for (const ComparedFigure& figure : compare(results_of(before), results_of(after), {})) {
    names.push_back(figure.metric.substr(0, 4) + " " + name_of(figure.difference));
  }
  return names;
}

TEST(Compare, SimulatedFiguresAreExact) {
  EXPECT_THAT(verdicts({{"dp", 1, 32, 1, 100}}, {{"dp", 1, 32, 1, 100.5}}), ElementsAre("thro same", "peak same"));
  EXPECT_THAT(verdicts({{"dp", 1, 32, 1, 100}}, {{"dp", 1, 32, 1, 95}}), ElementsAre("thro worse", "peak same"));
  EXPECT_THAT(verdicts({{"dp", 1, 32, 1, 100, 100}}, {{"dp", 1, 32, 1, 200, 50}}),
              ElementsAre("thro better", "peak better"));
}

TEST(Compare, MeasuredFiguresAreTested) {
  const auto cells = [](std::initializer_list<double> values) {
    std::vector<TestCell> all;
    for (const double value : values) {
      all.push_back({"dp", 1, 32, static_cast<std::int64_t>(all.size()) + 1, value, 1, "measured"});
    }
    return all;
  };
  EXPECT_THAT(verdicts(cells({100, 101, 99}), cells({90, 91, 89})), ElementsAre("thro worse", "peak same"));
  EXPECT_THAT(verdicts(cells({100, 120, 80}), cells({90, 111, 70})), ElementsAre("thro same", "peak same"));
  EXPECT_THAT(verdicts(cells({100}), cells({90})), ElementsAre("thro not tested", "peak same"));
}

TEST(Compare, ACellThatIsLostIsWorse) {
  EXPECT_THAT(verdicts({{"dp"}, {"x"}}, {{"dp"}}), ElementsAre("thro same", "peak same", "resu worse"));
  EXPECT_THAT(verdicts({{"dp"}}, {{"dp", 1, 32, 1, 1, 1, "", "timeout"}}), ElementsAre("resu worse"));
  EXPECT_THAT(verdicts({{"dp", 1, 32, 1, 1, 1, "measured"}}, {{"dp"}}), ElementsAre("resu not tested"));
  // Also where some repetitions are left.
  EXPECT_THAT(verdicts({{"dp", 1, 32, 1, 1, 1, "measured"}, {"dp", 1, 32, 2, 1, 1, "measured"}},
                       {{"dp", 1, 32, 1, 1, 1, "measured"}, {"dp", 1, 32, 2, 1, 1, "", "error"}}),
              ElementsAre("resu worse", "thro same", "peak same"));
  EXPECT_THAT(verdicts({{"dp", 1, 32, 1, 1, 1, "", "infeasible"}}, {}), ElementsAre());
}

// Sweeps of predictions have errors in place of throughputs.
TEST(Compare, ErrorsOfPredictions) {
  const auto sweep = [](double mape) {
    Results results;
    results.sweep = true;
    results.axes = {"set"};
    using storage::ColumnType;
    for (const char* name : {"cell", "status", "reason", "set", "kind"}) {
      results.cells.columns.push_back({name, ColumnType::text, "1", ""});
    }
    results.cells.columns.push_back({"mape", ColumnType::float64, "1", ""});
    results.cells.columns.push_back({"peak_memory_bytes", ColumnType::uint64, "bytes", ""});
    results.cells.rows.push_back({"id", "done", "", "piper", "simulated", mape, std::int64_t{0}});
    return results;
  };
  const auto figures = compare(sweep(0.03), sweep(0.05), {});
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_EQ(figures[0].metric, "mape");
  EXPECT_EQ(figures[0].difference, Difference::worse);
}

TEST(Paper, BytesAreReadable) {
  const auto rows = paper_rows(read_published("metric,published,better\npeak_memory_bytes,1457520640,lower\n", "s.csv"),
                               table_of({{"dp", 1, 32, 1, 1, 1 << 20}}), test_axes());
  EXPECT_THAT(readable(rows).rows[0],
              ElementsAre("", "", "peak_memory_bytes", "1390 MiB", "1 MiB", "", "simulated", "reached", ""));
}

}  // namespace
}  // namespace millrace::record
