// Groups cells that differ in their number of devices only.
#include "record/scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "record/statistics.h"

namespace millrace::record {
namespace {

using Points = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>>;  // by devices and batch

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

// Points of one line of a scaling table, by devices; `batch`: what it has of the batch.
struct Series {
  std::string word, batch;
  std::map<std::int64_t, const std::vector<double>*> throughputs;
  std::map<std::int64_t, std::int64_t> batches;

  void add(std::int64_t devices, std::int64_t size, const std::vector<double>& values) {
    throughputs[devices] = &values;
    batches[devices] = size;
  }
};

// Strong scaling keeps the batch, weak scaling the samples of a device; one study may hold both. Weak series start at
// the fewest devices, since in a full grid of batches every diagonal is one.
std::vector<Series> series_of(const Points& points) {
  std::map<std::int64_t, Series> strong;
  std::map<double, Series> weak;
  Series mixed{"mixed", "", {}, {}};
  const std::int64_t fewest = points.begin()->first.first;
  for (const auto& [place, values] : points) {
    const auto [devices, batch] = place;
    strong.try_emplace(batch, Series{"strong", std::to_string(batch), {}, {}})
        .first->second.add(devices, batch, values);
    const double each = static_cast<double>(batch) / static_cast<double>(devices);
    weak.try_emplace(each, Series{"weak", fmt::format("{:g} a device", each), {}, {}})
        .first->second.add(devices, batch, values);
    mixed.add(devices, batch, values);
  }
  std::vector<Series> all;
  for (auto& [batch, series] : strong) {
    if (series.throughputs.size() > 1) all.push_back(std::move(series));
  }
  for (auto& [each, series] : weak) {
    if (series.throughputs.size() > 1 && series.throughputs.contains(fewest)) all.push_back(std::move(series));
  }
  if (all.empty() && mixed.throughputs.size() > 1) all.push_back(std::move(mixed));
  return all;
}

void add_rows(const Group& group, const Series& series, std::optional<std::size_t> batch_column,
              std::vector<ScalingRow>& rows) {
  std::vector<std::string> settings = group.second;
  if (batch_column) settings[*batch_column] = series.batch;
  const auto& [first_devices, first] = *series.throughputs.begin();
  const Sample first_sample = sample_of(*first);
  const Interval base{first_sample.mean, half_width_95(first_sample)};
  for (const auto& [devices, values] : series.throughputs) {
    const Sample sample = sample_of(*values);
    ScalingRow row{group.first, settings, series.word, devices, series.batches.at(devices), sample.count, {}, {}, {}};
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
  const double width = interval.half_width * scale;
  return fmt::format("{} ± {}{}", digits, width >= 100 ? fmt::format("{:.0f}", width) : fmt::format("{:.2g}", width),
                     unit);
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
  std::optional<std::size_t> batch_column;  // among the groups'; each series says what it has there
  for (const std::string& axis : axes) {
    const auto column = done.find(axis);
    if (!column || repeats(axis) || follows_devices(done, *column, *devices)) continue;
    if (axis == "data.batch") batch_column = grouping.size();
    grouping.push_back(*column);
    scaling.group_columns.push_back(axis);
  }
  std::map<Group, Points> groups;
  for (const auto& row : done.rows) {
    Group group{to_text(row[*kind]), {}};
    for (const std::size_t column : grouping) group.second.push_back(to_text(row[column]));
    if (batch_column) group.second[*batch_column].clear();
    const std::pair place{static_cast<std::int64_t>(*number_of(row[*devices])),
                          static_cast<std::int64_t>(number_of(row[*batch]).value_or(0))};
    groups[group][place].push_back(*number_of(row[*throughput]));
  }
  for (const auto& [group, points] : groups) {
    for (const Series& series : series_of(points)) add_rows(group, series, batch_column, scaling.rows);
  }
  return scaling;
}

Scaling scaling_of(const std::vector<Results>& all) {
  if (all.size() == 1) return scaling_of(all.front().cells, all.front().axes);
  Scaling whole;
  std::vector<std::pair<std::string, Scaling>> each;
  for (const Results& results : all) {
    Scaling one = scaling_of(results.cells, results.axes);
    if (one.rows.empty()) continue;
    for (const std::string& column : one.group_columns) {
      const auto& known = whole.group_columns;
      if (std::find(known.begin(), known.end(), column) == known.end()) whole.group_columns.push_back(column);
    }
    each.emplace_back(results.file.string(), std::move(one));
  }
  whole.group_columns.emplace_back("file");
  for (auto& [file, one] : each) {
    for (ScalingRow& row : one.rows) {
      std::vector<std::string> group(whole.group_columns.size());
      for (std::size_t c = 0; c < one.group_columns.size(); ++c) {
        const auto place = std::find(whole.group_columns.begin(), whole.group_columns.end(), one.group_columns[c]);
        group[static_cast<std::size_t>(place - whole.group_columns.begin())] = row.group[c];
      }
      group.back() = file;
      row.group = std::move(group);
      whole.rows.push_back(std::move(row));
    }
  }
  return whole;
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
