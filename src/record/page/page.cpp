// Puts the page together.
#include "record/page/page.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "record/page/assets.h"
#include "record/page/charts.h"
#include "record/page/pictures.h"
#include "record/scaling.h"
#include "record/table_text.h"

namespace millrace::record {
namespace {

using nlohmann::json;

// A script element ends at "</", wherever that stands.
std::string in_script(std::string text) {
  for (std::size_t at = text.find("</"); at != std::string::npos; at = text.find("</", at + 3))
    text.insert(at + 1, "\\");
  return text;
}

std::string table_html(const TextTable& table, const std::string& caption, const std::string& attributes = "") {
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"{}\"><table{}><caption>{}</caption>\n<thead><tr>",
      escaped(caption), attributes, escaped(caption));
  for (const std::string& column : table.columns) html += fmt::format("<th scope=\"col\">{}</th>", escaped(column));
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (const std::string& cell : row) {
      constexpr std::size_t kLong = 40;  // characters: such a text takes several lines, so that its neighbours are seen
      html += (cell.size() > kLong ? "<td class=\"long\">" : "<td>") + escaped(cell) + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string fact_text(const Fact& fact) {
  return std::visit([](const auto& value) { return fmt::format("{}", value); }, fact.value);
}

std::string context_html(const std::vector<Results>& all) {
  TextTable table{{"file", "kind of results", "status", "made by", "host", "started", "command"}, {}};
  for (const Results& results : all) {
    std::map<std::string, std::string> facts;
    for (const Fact& fact : results.context) facts[fact.name] = fact_text(fact);
    table.rows.push_back({results.file.string(), results.sweep ? "sweep" : "run", facts["status"],
                          "millrace " + facts["millrace_version"] + " " + facts["git_commit"], facts["host"],
                          facts["started"], facts["command"]});
  }
  return "<h2>Where these results come from</h2>\n" + table_html(table, "Files of this report");
}

std::string verdicts_html(const DataTable& cells, const std::vector<PaperRow>& paper) {
  std::map<std::string, int> counts, kinds;
  const std::size_t status = cells.at("status");
  const auto kind = cells.find("kind");
  for (const auto& row : cells.rows) {
    ++counts[to_text(row[status])];
    if (kind && !to_text(row[*kind]).empty()) ++kinds[to_text(row[*kind])];
  }
  std::string html = "<h2>Verdicts</h2>\n<ul class=\"counts\">\n";
  for (const auto& [name, count] : counts) {
    html +=
        fmt::format("<li class=\"{}\"><b>{}</b> {}</li>\n", name == "done" ? "good" : "other", count, escaped(name));
  }
  for (const auto& [name, count] : kinds) html += fmt::format("<li><b>{}</b> {}</li>\n", count, escaped(name));
  html += "</ul>\n";
  if (!paper.empty()) html += table_html(readable(paper), "Published figures beside ours");
  return html;
}

std::vector<Chart> charts_of(const std::vector<Results>& all, const DataTable& cells,
                             const std::vector<std::string>& axes, const Scaling& scaling) {
  std::vector<Chart> charts = scaling_charts(scaling);
  const auto add = [&](std::optional<Chart> chart) {
    if (chart) charts.push_back(std::move(*chart));
  };
  add(memory_chart(cells, axes));
  add(comparison_chart(cells, axes));
  add(prediction_chart(cells));
  add(loss_chart(all));
  for (std::size_t i = 0; i < all.size(); ++i) add(rank_chart(all[i], fmt::format("ranks-{}", i)));
  return charts;
}

json chart_json(const Chart& chart) {
  static const std::map<ChartKind, std::string> kinds{{ChartKind::points, "points"},
                                                      {ChartKind::lines, "lines"},
                                                      {ChartKind::bars, "bars"},
                                                      {ChartKind::stacked, "stacked"}};
  json series = json::array();
  for (const ChartSeries& one : chart.series) {
    json points = json::array();
    for (const ChartPoint& point : one.points) points.push_back({point.x, point.y, point.label});
    series.push_back({{"name", one.name}, {"line", one.line}, {"points", std::move(points)}});
  }
  return {{"id", chart.id},
          {"title", chart.title},
          {"kind", kinds.at(chart.kind)},
          {"x", chart.x_title},
          {"y", chart.y_title},
          {"categories", chart.categories},
          {"logarithmic", chart.logarithmic},
          {"series", std::move(series)}};
}

// Beside the picture the same figures as a table, for readers that see no pictures; of thousands of points the first.
std::string chart_html(const Chart& chart) {
  constexpr std::size_t kMostRows = 200;
  TextTable table{{"series", "point", chart.x_title, chart.y_title}, {}};
  std::size_t points = 0;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (++points > kMostRows) continue;
      const auto index = static_cast<std::size_t>(point.x);
      const bool named = index < chart.categories.size();
      table.rows.push_back({series.name, point.label, named ? chart.categories[index] : fmt::format("{:.5g}", point.x),
                            fmt::format("{:.5g}", point.y)});
    }
  }
  const std::string more = points > kMostRows ? fmt::format(", the first {} of {}", kMostRows, points) : "";
  return fmt::format(
             "<figure>\n<figcaption><h3>{0}</h3><p>{1}</p></figcaption>\n<div class=\"canvas\"><canvas "
             "id=\"chart-{2}\" "
             "role=\"img\" tabindex=\"0\" aria-label=\"{0}. {1} Left and right arrows go from point to point; the "
             "table "
             "below has the figures.\"></canvas></div>\n<p class=\"point\" id=\"point-{2}\" aria-live=\"polite\"></p>\n"
             "<details><summary>Figures of this chart</summary>\n",
             escaped(chart.title), escaped(chart.text), escaped(chart.id)) +
         table_html(table, chart.title + more) + "</details>\n</figure>\n";
}

}  // namespace

std::string report_page(const std::string& title, const std::vector<Results>& all, const std::vector<PaperRow>& paper) {
  const std::vector<std::string> axes = axes_of(all);
  const DataTable cells = merged(all);
  const Scaling scaling = scaling_of(all);
  const std::vector<Chart> charts = charts_of(all, cells, axes, scaling);
  json data = json::array();
  std::string pictures;
  for (const Chart& chart : charts) {
    data.push_back(chart_json(chart));
    pictures += chart_html(chart);
  }
  std::string drawn;
  for (const Results& results : all) drawn += timeline_html(results) + stage_map_html(results);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n";
  html += fmt::format("<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header><h1>{}</h1>", escaped(title),
                      kPageStyle, escaped(title));
  html += "<button type=\"button\" id=\"theme\">Light or dark</button></header>\n<main>\n";
  html += context_html(all) + verdicts_html(cells, paper);
  if (!scaling.rows.empty()) html += "<h2>Scaling</h2>\n" + table_html(readable(scaling), "Speed-up and efficiency");
  html += "<h2>Charts</h2>\n<div class=\"charts\">\n" + pictures + "</div>\n";
  if (!drawn.empty()) html += "<h2>Plans</h2>\n" + drawn;
  html += "<h2>Cells</h2>\n";
  html += table_html(readable(essential(all)), "All cells; a column's name sorts by it", " id=\"cells\"");
  html += "</main>\n<script type=\"application/json\" id=\"charts\">" + in_script(data.dump()) + "</script>\n";
  html += fmt::format("<!-- Chart.js, under this licence:\n{}-->\n<script>{}</script>\n<script>\n{}</script>\n",
                      kChartLicence, in_script(std::string(kChartLibrary)), in_script(std::string(kPageScript)));
  return html + "</body>\n</html>\n";
}

}  // namespace millrace::record
