// Reads both kinds of results files.
#include "record/results.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "record/cells_file.h"
#include "storage/file_lock.h"

namespace millrace::record {
namespace {

using storage::Column;
using storage::ColumnType;

struct Figure {
  const char* group;
  const char* name;  // of the attribute
  Column column;
};

const std::vector<Figure>& run_figures() {
  static const std::vector<Figure> figures{
      {"summary", "iteration_time_s", {"iteration_time_s", ColumnType::float64, "s", ""}},
      {"summary", "throughput_samples_per_s", {"throughput_samples_per_s", ColumnType::float64, "samples/s", ""}},
      {"summary", "peak_memory_bytes", {"peak_memory_bytes", ColumnType::uint64, "bytes", ""}},
      {"summary", "mean_memory_bytes", {"mean_memory_bytes", ColumnType::uint64, "bytes", ""}},
      {"summary", "peak_rss_bytes", {"peak_rss_bytes", ColumnType::uint64, "bytes", ""}},
      {"summary", "memory_efficiency", {"memory_efficiency", ColumnType::float64, "samples/s/GiB", ""}},
      {"summary", "bubble_fraction", {"bubble_fraction", ColumnType::float64, "1", ""}},
      {"prediction", "iteration_time_s", {"predicted_iteration_time_s", ColumnType::float64, "s", ""}},
      {"prediction", "peak_memory_bytes", {"predicted_peak_memory_bytes", ColumnType::float64, "bytes", ""}},
      {"summary", "final_loss", {"final_loss", ColumnType::float64, "1", ""}},
      {"summary", "test_accuracy", {"accuracy", ColumnType::float64, "1", ""}},
  };
  return figures;
}

Value figure_of(const storage::File& file, const Figure& figure) {
  if (!file.contains(figure.group)) return {};
  const storage::Group group = file.group(figure.group);
  if (!group.has(figure.name)) return {};
  if (figure.column.type == ColumnType::uint64) return group.integer(figure.name);
  const double value = group.real(figure.name);
  return std::isfinite(value) ? Value(value) : Value();
}

// Running, or left behind by a kill: its rows are there, its figures are not.
std::string reason_of(const std::string& status) {
  if (status == "running") return "still running";
  if (status == kKilled) return "the run ended without a word";
  return status == "complete" ? "" : "the run " + status;
}

void read_run(const storage::File& file, Results& results) {
  const std::string status = status_of(results.file);
  results.cells.columns = {{"cell", ColumnType::text, "1", ""},
                           {"status", ColumnType::text, "1", ""},
                           {"reason", ColumnType::text, "1", ""}};
  std::vector<Value> row{results.file.stem().string(), status == "complete" ? "done" : status, reason_of(status)};
  if (file.has("devices")) {
    results.cells.columns.push_back({"devices", ColumnType::int64, "1", ""});
    row.emplace_back(file.integer("devices"));
  }
  for (const Figure& figure : run_figures()) {
    results.cells.columns.push_back(figure.column);
    row.push_back(figure_of(file, figure));
  }
  results.cells.columns.push_back({"kind", ColumnType::text, "1", ""});
  row.emplace_back(file.text("kind"));
  results.cells.rows.push_back(std::move(row));
  results.iterations = read_table(file, "iterations");
  if (file.contains("ranks")) results.ranks = read_table(file, "ranks");
  if (file.contains("instructions")) results.instructions = read_table(file, "instructions");
  if (file.contains("plan")) results.plan = file.text_dataset("plan");
  for (const char* name : {"name", "command", "started", "millrace_version", "git_commit", "host", "status", "kind"}) {
    if (file.has(name)) results.context.push_back({name, file.text(name)});
  }
}

std::string plan_of_the_fastest(const storage::File& file, const DataTable& cells) {
  const auto rate = cells.find("throughput_samples_per_s");
  std::string fastest;
  double most = 0;
  for (const auto& row : cells.rows) {
    const auto value = rate ? number_of(row[*rate]) : std::nullopt;
    if (!value || *value <= most) continue;
    most = *value;
    fastest = to_text(row[cells.at("cell")]);
  }
  const std::string name = "cells_detail/" + fastest + "/plan";
  return !fastest.empty() && file.contains(name) ? file.text_dataset(name) : "";
}

}  // namespace

std::string status_of(const std::filesystem::path& path) {
  const bool held = storage::is_held(path);  // before the file is read: a writer may end in between
  const std::string status = storage::File::open(path).text("status");
  return status == "running" && !held ? kKilled : status;
}

Results read_results(const std::filesystem::path& path) {
  Results results;
  results.file = path;
  const storage::File file = storage::File::open(path);
  if (is_cells_file(file)) {
    CellsFile content = read_cells_file(path);
    results.sweep = true;
    results.context = std::move(content.root);
    results.axes = std::move(content.axes);
    results.cells = std::move(content.cells);
    results.published = std::move(content.published);
    results.plan = plan_of_the_fastest(file, results.cells);
  } else if (file.contains("iterations")) {
    read_run(file, results);
  } else {
    throw InvalidInput(path.string() + ": holds results of neither a run nor a sweep");
  }
  for (Fact& fact : results.context) {
    if (fact.name == "status") fact.value = status_of(path);
  }
  return results;
}

DataTable merged(const std::vector<Results>& all) {
  DataTable table;
  for (const Results& results : all) {
    for (const Column& column : results.cells.columns) {
      if (!table.find(column.name)) table.columns.push_back(column);
    }
  }
  if (all.size() > 1) table.columns.push_back({"file", ColumnType::text, "1", "results file"});
  for (const Results& results : all) {
    for (const auto& row : results.cells.rows) {
      std::vector<Value> whole(table.columns.size());
      for (std::size_t c = 0; c < row.size(); ++c) whole[table.at(results.cells.columns[c].name)] = row[c];
      if (all.size() > 1) whole.back() = results.file.string();
      table.rows.push_back(std::move(whole));
    }
  }
  return table;
}

std::vector<std::string> axes_of(const std::vector<Results>& all) {
  std::vector<std::string> axes;
  for (const Results& results : all) {
    for (const std::string& axis : results.axes) {
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
    }
  }
  return axes;
}

DataTable essential(const std::vector<Results>& all) {
  std::vector<std::string> columns{"cell", "status"};
  const std::vector<std::string> axes = axes_of(all);
  columns.insert(columns.end(), axes.begin(), axes.end());
  for (const char* name :
       {"devices", "stage_count", "pipelines", "micro_batches", "iteration_time_s", "throughput_samples_per_s",
        "peak_memory_bytes", "memory_efficiency", "balance", "objective_value", "kind", "reason", "file"}) {
    columns.emplace_back(name);
  }
  return with_columns(merged(all), columns);
}

}  // namespace millrace::record
