// Groups cells that differ in their number of devices only.
#include "record/scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "record/statistics.h"

namespace millrace::record {
namespace {

struct Point {
  std::vector<double> throughputs;
  std::int64_t batch = 0;
};

using Group = std::pair<std::string, std::vector<std::string>>;  // kind and settings

bool repeats(const std::string& axis) { return axis == "repetition" || axis == "seed"; }

// An axis that has one value for each number of devices (ranks, the cluster's size, a batch linked with it) is part of
// the scale, not of what is scaled.
bool follows_devices(const DataTable& cells, std::size_t axis, std::size_t devices) {
  std::map<std::string, std::set<std::string>> values;
  std::set<std::string> all;
  for (const auto& row : cells.rows) {
    values[to_text(row[devices])].insert(to_text(row[axis]));
    all.insert(to_text(row[axis]));
  }
  const bool one_each =
      std::all_of(values.begin(), values.end(), [](const auto& one) { return one.second.size() == 1; });
  return one_each && all.size() > 1;
}

// Of a ratio of two means: relative errors add in squares.
Interval ratio(const Interval& over, const Interval& under, double factor) {
  const double value = over.value / under.value * factor;
  const double a = over.half_width / over.value, b = under.half_width / under.value;
  return {value, value * std::sqrt(a * a + b * b)};
}

std::string scaling_word(std::int64_t devices, std::int64_t batch, std::int64_t first_devices,
                         std::int64_t first_batch) {
  if (batch == first_batch) return "strong";
  return batch * first_devices == first_batch * devices ? "weak" : "mixed";
}

void add_rows(const Group& group, const std::map<std::int64_t, Point>& points, std::vector<ScalingRow>& rows) {
  if (points.size() < 2) return;
  const auto& [first_devices, first] = *points.begin();
  const Sample first_sample = sample_of(first.throughputs);
  const Interval base{first_sample.mean, half_width_95(first_sample)};
  const auto& [last_devices, last] = *points.rbegin();
  const std::string word = scaling_word(last_devices, last.batch, first_devices, first.batch);
  for (const auto& [devices, point] : points) {
    const Sample sample = sample_of(point.throughputs);
    ScalingRow row{group.first, group.second, word, devices, point.batch, sample.count, {}, {}, {}};
    row.throughput = {sample.mean, half_width_95(sample)};
    const double more = static_cast<double>(devices) / static_cast<double>(first_devices);
    row.speed_up = devices == first_devices ? Interval{1, 0} : ratio(row.throughput, base, 1);
    row.efficiency = {row.speed_up.value / more, row.speed_up.half_width / more};
    rows.push_back(std::move(row));
  }
}

std::string text_of(const Interval& interval, double scale, const char* unit) {
  const double value = interval.value * scale;
  const std::string digits = std::abs(value) >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
  if (interval.half_width <= 0) return digits + unit;
  return fmt::format("{} ± {:.2g}{}", digits, interval.half_width * scale, unit);
}

}  // namespace

Scaling scaling_of(const DataTable& cells, const std::vector<std::string>& axes) {
  Scaling scaling;
  const auto devices = cells.find("devices"), batch = cells.find("batch"), kind = cells.find("kind");
  const auto throughput = cells.find("throughput_samples_per_s"), status = cells.find("status");
  if (!devices || !batch || !kind || !throughput || !status) return scaling;
  DataTable done{cells.columns, {}};
  for (const auto& row : cells.rows) {
    if (to_text(row[*status]) == "done" && number_of(row[*throughput])) done.rows.push_back(row);
  }
  std::vector<std::size_t> grouping;
  for (const std::string& axis : axes) {
    const auto column = done.find(axis);
    if (!column || repeats(axis) || follows_devices(done, *column, *devices)) continue;
    grouping.push_back(*column);
    scaling.group_columns.push_back(axis);
  }
  std::map<Group, std::map<std::int64_t, Point>> groups;
  for (const auto& row : done.rows) {
    Group group{to_text(row[*kind]), {}};
    for (const std::size_t column : grouping) group.second.push_back(to_text(row[column]));
    Point& point = groups[group][static_cast<std::int64_t>(*number_of(row[*devices]))];
    point.throughputs.push_back(*number_of(row[*throughput]));
    point.batch = static_cast<std::int64_t>(number_of(row[*batch]).value_or(0));
  }
  for (const auto& [group, points] : groups) add_rows(group, points, scaling.rows);
  return scaling;
}

TextTable readable(const Scaling& scaling) {
  TextTable table;
  table.columns = scaling.group_columns;
  for (const char* name : {"scaling", "devices", "batch", "runs", "samples/s", "speed-up", "efficiency", "kind"}) {
    table.columns.emplace_back(name);
  }
  for (const ScalingRow& row : scaling.rows) {
    std::vector<std::string> cells = row.group;
    cells.insert(cells.end(), {row.scaling, std::to_string(row.devices), std::to_string(row.batch),
                               std::to_string(row.repetitions), text_of(row.throughput, 1, ""),
                               text_of(row.speed_up, 1, ""), text_of(row.efficiency, 100, " %"), row.kind});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace millrace::record
