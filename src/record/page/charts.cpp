// Picks the figures of each chart out of tables.
#include "record/page/charts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/text.h"

namespace millrace::record {
namespace {

using Row = std::vector<Value>;

std::optional<double> figure(const DataTable& cells, const Row& row, std::string_view column) {
  const auto index = cells.find(column);
  return index ? number_of(row[*index]) : std::nullopt;
}

std::string text(const DataTable& cells, const Row& row, std::string_view column) {
  const auto index = cells.find(column);
  return index ? to_text(row[*index]) : "";
}

std::string label_of(const DataTable& cells, const Row& row, const std::vector<std::string>& axes) {
  std::vector<std::string> parts;
  for (const std::string& axis : axes) {
    if (const std::string value = text(cells, row, axis); !value.empty()) parts.push_back(value);
  }
  return parts.empty() ? text(cells, row, "cell") : join(parts, " · ");
}

ChartSeries& series_of(Chart& chart, const std::string& name) {
  for (ChartSeries& series : chart.series) {
    if (series.name == name) return series;
  }
  chart.series.push_back({name, {}, false});
  return chart.series.back();
}

// Points that no other point beats in less memory and more throughput, by memory.
ChartSeries front_of(std::vector<ChartPoint> points, const std::string& kind) {
  std::sort(points.begin(), points.end(),
            [](const ChartPoint& a, const ChartPoint& b) { return a.x != b.x ? a.x < b.x : a.y > b.y; });
  ChartSeries front{"front, " + kind, {}, true};
  for (const ChartPoint& point : points) {
    if (front.points.empty() || point.y > front.points.back().y) front.points.push_back(point);
  }
  return front;
}

// The name of a map that has one; long values are cut.
std::string short_value(std::string_view value) {
  constexpr std::string_view kNamed = "{name: ";
  constexpr std::size_t kMostShown = 40;
  if (value.starts_with(kNamed)) {
    value.remove_prefix(kNamed.size());
    value = value.substr(0, value.find_first_of(",}"));
  }
  std::string text(value.substr(0, kMostShown));
  if (value.size() > kMostShown) text += "…";
  return text;
}

}  // namespace

std::vector<Chart> scaling_charts(const Scaling& scaling) {
  if (scaling.rows.empty()) return {};
  Chart throughput{"scaling", "Throughput against devices", "", ChartKind::lines, "devices", "samples/s", {}, {},
                   false};
  Chart efficiency{
      "efficiency", "Efficiency against devices", "", ChartKind::lines, "devices", "efficiency in %", {}, {}, false};
  throughput.text = efficiency.text =
      "Means over repetitions; measured, emulated and simulated results are series of their own.";
  for (const ScalingRow& row : scaling.rows) {
    std::vector<std::string> parts;
    for (const std::string& value : row.group) {
      if (!value.empty()) parts.push_back(short_value(value));
    }
    const std::string group = parts.empty() ? "" : join(parts, " · ") + ", ";
    const std::string name = fmt::format("{}{}, {}", group, row.scaling, row.kind);
    const auto devices = static_cast<double>(row.devices);
    series_of(throughput, name).points.push_back({devices, row.throughput.value, name});
    series_of(efficiency, name).points.push_back({devices, row.efficiency.value * 100, name});
  }
  return {throughput, efficiency};
}

std::optional<Chart> memory_chart(const DataTable& cells, const std::vector<std::string>& axes) {
  double most = 0;
  for (const Row& row : cells.rows) most = std::max(most, figure(cells, row, "peak_memory_bytes").value_or(0));
  const bool large = most >= kGiB;
  const double unit = large ? kGiB : kGiB / 1024;
  Chart chart{"memory",
              "Memory against throughput",
              "Each point is a cell; to the left and up is better. No cell of its kind beats those of a front in both.",
              ChartKind::points,
              fmt::format("peak memory of the fullest rank in {}", large ? "GiB" : "MiB"),
              "samples/s",
              {},
              {},
              true};
  std::map<std::string, std::vector<ChartPoint>> kinds;  // what is measured is not held against what is simulated
  for (const Row& row : cells.rows) {
    const auto memory = figure(cells, row, "peak_memory_bytes"), rate = figure(cells, row, "throughput_samples_per_s");
    if (!memory || !rate || *memory <= 0 || *rate <= 0) continue;
    const std::string kind = text(cells, row, "kind"), partitioner = text(cells, row, "partitioner");
    const std::string name = partitioner.empty() ? kind : fmt::format("{}, {}", partitioner, kind);
    const ChartPoint point{*memory / unit, *rate, label_of(cells, row, axes)};
    series_of(chart, name).points.push_back(point);
    kinds[kind].push_back(point);
  }
  if (chart.series.empty()) return std::nullopt;
  for (auto& [kind, points] : kinds) {
    if (points.size() > 1) chart.series.push_back(front_of(std::move(points), kind));
  }
  return chart;
}

std::optional<Chart> comparison_chart(const DataTable& cells, const std::vector<std::string>& axes) {
  if (axes.empty()) return std::nullopt;
  const auto named = std::find(axes.begin(), axes.end(), "plan.partitioner");
  const std::string axis = named == axes.end() ? axes.front() : *named;
  std::map<std::string, double> best;  // by kind and the other settings
  const auto key_of = [&](const Row& row) {
    std::string key = text(cells, row, "kind");
    for (const std::string& other : axes) {
      if (other != axis && other != "repetition") key += "\n" + text(cells, row, other);
    }
    return key;
  };
  for (const Row& row : cells.rows) {
    const auto rate = figure(cells, row, "throughput_samples_per_s");
    if (rate) best[key_of(row)] = std::max(best[key_of(row)], *rate);
  }
  struct Mean {
    double logs = 0;
    int count = 0;
  };
  std::map<std::string, std::map<std::string, Mean>> means;  // kind, value of the axis
  std::vector<std::string> values;
  for (const Row& row : cells.rows) {
    const auto rate = figure(cells, row, "throughput_samples_per_s");
    if (!rate || *rate <= 0) continue;
    const std::string set = text(cells, row, axis);
    const std::string value = set.empty() ? "not set" : short_value(set);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    Mean& mean = means[text(cells, row, "kind")][value];
    mean.logs += std::log(*rate / best[key_of(row)]);
    ++mean.count;
  }
  if (values.size() < 2) return std::nullopt;
  Chart chart{
      "comparison",
      fmt::format("Throughput by {}", axis),
      "Part of the best throughput among cells that differ in this setting only: geometric mean over the cells.",
      ChartKind::bars,
      axis,
      "% of the best",
      values,
      {},
      false};
  for (const auto& [kind, by_value] : means) {
    ChartSeries& series = series_of(chart, kind);
    for (std::size_t v = 0; v < values.size(); ++v) {
      const auto mean = by_value.find(values[v]);
      if (mean == by_value.end()) continue;
      series.points.push_back({static_cast<double>(v), 100 * std::exp(mean->second.logs / mean->second.count),
                               fmt::format("{}, {} cells", values[v], mean->second.count)});
    }
  }
  return chart;
}

std::optional<Chart> prediction_chart(const DataTable& cells) {
  Chart chart{"prediction",
              "Predicted against measured iteration time",
              "On the line both are equal.",
              ChartKind::points,
              "measured in ms",
              "predicted in ms",
              {},
              {},
              true};
  double low = 0, high = 0;
  for (const Row& row : cells.rows) {
    const auto predicted = figure(cells, row, "predicted_iteration_time_s"),
               measured = figure(cells, row, "iteration_time_s");
    if (!predicted || !measured || *measured <= 0) continue;
    series_of(chart, text(cells, row, "kind"))
        .points.push_back({*measured * 1e3, *predicted * 1e3, text(cells, row, "cell")});
    low = low > 0 ? std::min({low, *measured, *predicted}) : std::min(*measured, *predicted);
    high = std::max({high, *measured, *predicted});
  }
  if (chart.series.empty()) return std::nullopt;
  chart.series.push_back({"equal", {{low * 1e3, low * 1e3, ""}, {high * 1e3, high * 1e3, ""}}, true});
  return chart;
}

std::optional<Chart> loss_chart(const std::vector<Results>& all) {
  Chart chart{"loss",
              "Loss",
              "Mean over the samples of an iteration, before its update.",
              ChartKind::lines,
              "iteration",
              "loss",
              {},
              {},
              false};
  constexpr std::size_t kMostPoints = 1000;  // of a curve: more than a screen has columns for
  for (const Results& results : all) {
    const std::size_t rows = results.iterations.rows.size();
    if (rows == 0) continue;
    const std::string name = results.file.stem().string();
    const bool taken = std::any_of(chart.series.begin(), chart.series.end(),
                                   [&](const ChartSeries& other) { return other.name == name; });
    ChartSeries& series = series_of(chart, taken ? results.file.string() : name);
    const std::size_t step = rows / kMostPoints + 1;
    for (std::size_t r = 0; r < rows; r += step) {
      const Row& row = results.iterations.rows[r];
      const auto loss = figure(results.iterations, row, "loss"),
                 iteration = figure(results.iterations, row, "iteration");
      if (loss && iteration && std::isfinite(*loss)) series.points.push_back({*iteration, *loss, ""});
    }
  }
  if (chart.series.empty()) return std::nullopt;
  return chart;
}

std::optional<Chart> rank_chart(const Results& run, const std::string& id) {
  if (run.ranks.rows.empty()) return std::nullopt;
  const std::string name = run.file.stem().string();
  Chart chart{id,
              "Time of each rank: " + name,
              "Seconds in kernels and updates, and the rest.",
              ChartKind::stacked,
              "rank",
              "seconds",
              {},
              {},
              false};
  for (std::size_t r = 0; r < run.ranks.rows.size(); ++r) {
    const Row& row = run.ranks.rows[r];
    chart.categories.push_back(text(run.ranks, row, "rank"));
    for (const char* part : {"busy_s", "idle_s"}) {
      const auto seconds = figure(run.ranks, row, part);
      series_of(chart, part == std::string("busy_s") ? "busy" : "idle")
          .points.push_back({static_cast<double>(r), seconds.value_or(0), ""});
    }
  }
  return chart;
}

}  // namespace millrace::record
