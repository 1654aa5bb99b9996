// The page of a report: one file with everything inside, and charts of what the results have.
#include "record/page/page.h"

#include <cmath>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "record/page/charts.h"
#include "record/scaling.h"
#include "tests/record/result_tables.h"

namespace millrace::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Results sweep_of(const std::vector<TestCell>& cells) {
  Results results;
  results.file = "results/s.h5";
  results.sweep = true;
  results.axes = test_axes();
  results.cells = table_of(cells);
  results.context = {{"status", std::string("complete")}, {"command", std::string("millrace sweep <s> & more")}};
  return results;
}

nlohmann::json charts_in(const std::string& page) {
  const std::string mark = "<script type=\"application/json\" id=\"charts\">";
  const std::size_t begin = page.find(mark) + mark.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

std::vector<std::string> ids_in(const std::string& page) {
  std::vector<std::string> ids;
  for (const auto& chart : charts_in(page)) ids.push_back(chart.at("id").get<std::string>());
  return ids;
}

TEST(Page, HasEverythingInside) {
  const std::string page = report_page("s", {sweep_of({{"dp", 1, 32, 1, 10}, {"dp", 2, 32, 1, 19}})}, {});
  EXPECT_LT(page.size(), 3U << 20);
  EXPECT_THAT(page, HasSubstr("Permission is hereby granted"));  // the library's licence
  EXPECT_THAT(page, HasSubstr("millrace sweep &lt;s&gt; &amp; more"));
  for (const char* link : {"src=\"", "href=\"http", "@import", "url(http", "sourceMappingURL=http"}) {
    EXPECT_THAT(page, Not(HasSubstr(link)));
  }
  EXPECT_THAT(ids_in(page), ElementsAre("scaling", "efficiency", "memory"));
}

TEST(Page, NoTextEndsItsScript) {
  const std::string page = report_page("s", {sweep_of({{"</script><b>", 1, 32, 1, 10}, {"x", 1, 32, 1, 9}})}, {});
  const auto charts = charts_in(page);
  EXPECT_THAT(charts.dump(), HasSubstr("</script><b>"));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;b&gt;"));
}

TEST(Page, ThousandsOfCellsStayUnderThreeMegabytes) {
  std::vector<TestCell> cells;
  for (int i = 0; i < 1440; ++i)
    cells.push_back({"partitioner" + std::to_string(i % 10), 1 << (i % 4), 256 + i, 1, 100.0 + i});
  EXPECT_LT(report_page("s", {sweep_of(cells)}, {}).size(), 3U << 20);
}

TEST(Charts, TheFrontHoldsWhatNothingBeats) {
  const DataTable cells = table_of({{"a", 1, 1, 1, 10, 1 << 30},
                                    {"b", 1, 1, 1, 9, std::int64_t{2} << 30},
                                    {"c", 1, 1, 1, 20, std::int64_t{3} << 30}});
  const auto chart = memory_chart(cells, test_axes());
  ASSERT_TRUE(chart);
  const ChartSeries& front = chart->series.back();
  ASSERT_EQ(front.points.size(), 2U);
  EXPECT_EQ(front.points[0].y, 10);
  EXPECT_EQ(front.points[1].y, 20);
}

// What is simulated beats nothing that is measured.
TEST(Charts, EachKindHasAFrontOfItsOwn) {
  const auto chart = memory_chart(table_of({{"a", 1, 1, 1, 10, 1 << 20, "measured"},
                                            {"b", 1, 1, 1, 20, 2 << 20, "measured"},
                                            {"a", 1, 1, 1, 900, 1 << 19, "simulated"}}),
                                  test_axes());
  ASSERT_TRUE(chart);
  EXPECT_EQ(chart->x_title, "peak memory of the fullest rank in MiB");
  const ChartSeries& front = chart->series.back();
  EXPECT_EQ(front.name, "front, measured");  // one point is no front
  ASSERT_EQ(front.points.size(), 2U);
  EXPECT_EQ(front.points[1].x, 2);
}

TEST(Scaling, EachSweepByItself) {
  Results first = sweep_of({{"dp", 1, 32, 1, 10}, {"dp", 2, 32, 1, 19}});
  Results second = sweep_of({{"dp", 1, 64, 1, 5}});
  second.axes = {"plan.partitioner"};
  second.file = "results/t.h5";
  const Scaling scaling = scaling_of(std::vector<Results>{first, second});
  EXPECT_THAT(scaling.group_columns, ElementsAre("plan.partitioner", "data.batch", "file"));
  ASSERT_EQ(scaling.rows.size(), 2U);
  EXPECT_THAT(scaling.rows[1].group, ElementsAre("dp", "32", "results/s.h5"));
  EXPECT_DOUBLE_EQ(scaling.rows[1].efficiency.value, 0.95);
}

TEST(Charts, ComparisonIsAgainstTheBestOfTheSameSettings) {
  const DataTable cells = table_of({{"a", 1, 1, 1, 10},
                                    {"b", 1, 1, 1, 5},
                                    {"a", 1, 2, 1, 10},
                                    {"b", 1, 2, 1, 20},
                                    {"b", 1, 3, 1, 1, 1, "", "error"}});
  const auto chart = comparison_chart(cells, test_axes());
  ASSERT_TRUE(chart);
  EXPECT_THAT(chart->categories, ElementsAre("a", "b"));
  const auto& points = chart->series.front().points;
  EXPECT_NEAR(points[0].y, 100 * std::sqrt(0.5), 1e-9);
  EXPECT_NEAR(points[1].y, 100 * std::sqrt(0.5), 1e-9);
}

}  // namespace
}  // namespace millrace::record
