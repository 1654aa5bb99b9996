// Which figures of a plan or a run become columns, with their units.
#include "app/sweep_columns.h"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "config/number.h"

namespace millrace::app {
namespace {

using nlohmann::json;
using record::Value;
using storage::Column;
using storage::ColumnType;

constexpr auto kInteger = ColumnType::int64;
constexpr auto kReal = ColumnType::float64;
constexpr auto kBytes = ColumnType::uint64;
constexpr auto kText = ColumnType::text;

// Those of `plan --format json` by their names, a dot for each level; then what the sweep adds.
const std::vector<Column>& figure_columns() {
  static const std::vector<Column> columns{
      {"partitioner", kText, "1", "that made the plan"},
      {"order", kText, "1", "of operators that was cut"},
      {"schedule", kText, "1", "order of computation"},
      {"objective", kText, "1", "what the plan was chosen by"},
      {"objective_value", kReal, "1", "in objective_unit; nan: none"},
      {"objective_unit", kText, "1", "unit of objective_value and bound"},
      {"bound", kReal, "1", "proven bound of the objective, in objective_unit"},
      {"bound_source", kText, "1", "what proves the bound"},
      {"optimality_gap", kReal, "1", "(objective - bound) / bound"},
      {"micro_batches", kInteger, "1", "of a pipeline"},
      {"pipelines", kInteger, "1", "data-parallel groups"},
      {"stage_count", kInteger, "1", "stages of all pipelines"},
      {"devices", kInteger, "1", "of the cluster"},
      {"batch", kInteger, "1", "samples of an iteration"},
      {"planning_time_s", kReal, "s", "of the partitioner"},
      {"stopped_by", kText, "1", "what ended the search"},
      {"iteration_time_s", kReal, "s", "from an iteration to the next"},
      {"makespan_s", kReal, "s", "one iteration alone"},
      {"throughput_samples_per_s", kReal, "samples/s", "batch over iteration time"},
      {"bottleneck_s", kReal, "s", "slowest stage, by sample"},
      {"peak_memory_bytes", kBytes, "bytes", "of the fullest rank"},
      {"mean_memory_bytes", kBytes, "bytes", "over the ranks"},
      {"peak_rss_bytes", kReal, "bytes", "resident memory of the fullest rank's process, of cells that train"},
      {"memory_efficiency", kReal, "samples/s/GiB", "throughput over peak memory"},
      {"bubble_fraction", kReal, "1", "idle part of the devices' time"},
      {"bytes_injected", kBytes, "bytes", "put on the network by an iteration"},
      {"node_crossings", kInteger, "1", "transfers between nodes"},
      {"hidden_communication.p2p", kReal, "1", "part of the transfers between stages behind computation"},
      {"hidden_communication.gradients", kReal, "1", "part of the reductions behind computation"},
      {"hidden_communication.tensor", kReal, "1", "part of tensor parallelism's collectives behind computation"},
      {"balance", kReal, "1", "slowest stage over the mean stage"},
      {"limiting_op", kText, "1", "operator that bounds the bottleneck"},
      {"predicted_iteration_time_s", kReal, "s", "beside a measured one"},
      {"predicted_throughput_samples_per_s", kReal, "samples/s", "beside a measured one"},
      {"predicted_peak_memory_bytes", kReal, "bytes", "beside a measured one"},
      {"final_loss", kReal, "1", "of the last iteration"},
      {"accuracy", kReal, "1", "fraction of the test split"},
      {"rows", kReal, "1", "measured steps that were predicted"},
      {"mape", kReal, "1", "mean error of their predictions"},
      {"median", kReal, "1", "median error of their predictions"},
      {"p90", kReal, "1", "error that nine of ten predictions stay below"},
      {"worst", kReal, "1", "largest error of their predictions"},
      {"bias", kReal, "1", "mean error with its sign"},
      {"regret", kReal, "1", "time lost by the plan that is predicted fastest, worst over jobs"},
  };
  return columns;
}

// Of the cell rather than of its plan.
const std::vector<Column>& closing_columns() {
  static const std::vector<Column> columns{
      {"kind", kText, "1", "measured, emulated or simulated"},
      {"cell_time_s", kReal, "s", "that the cell took"},
      {"cell_peak_rss_bytes", kBytes, "bytes", "resident set of the process that planned or simulated it"},
  };
  return columns;
}

bool all_are(const Suite& suite, std::size_t axis, const std::function<bool(const std::string&)>& is) {
  return std::all_of(suite.cells.begin(), suite.cells.end(),
                     [&](const SweepCell& cell) { return cell.settings[axis].empty() || is(cell.settings[axis]); });
}

bool is_integer(const std::string& text) { return config::parse_integer(text).fault == config::NumberFault::none; }
bool is_real(const std::string& text) { return config::parse_real(text).fault == config::NumberFault::none; }

// Only reals have a way to say that a value is missing.
ColumnType type_of_axis(const Suite& suite, std::size_t axis) {
  const bool complete = std::none_of(suite.cells.begin(), suite.cells.end(),
                                     [&](const SweepCell& cell) { return cell.settings[axis].empty(); });
  if (complete && all_are(suite, axis, is_integer)) return kInteger;
  return all_are(suite, axis, is_real) ? kReal : kText;
}

Value axis_value(const std::string& text, ColumnType type) {
  if (text.empty()) return {};
  if (type == kInteger) return config::parse_integer(text).value;
  if (type == kReal) return config::parse_real(text).value;
  return text;
}

// The value at "hidden_communication.p2p"; null if there is none.
const json* find(const json& document, std::string_view path) {
  const json* at = &document;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('.'), path.size());
    const auto found = at->is_object() ? at->find(std::string(path.substr(0, end))) : at->end();
    if (found == at->end()) return nullptr;
    at = &*found;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return at;
}

Value value_of(const json* figure, ColumnType type) {
  if (figure == nullptr || figure->is_null()) return {};
  if (type == kText) return figure->is_string() ? figure->get<std::string>() : figure->dump();
  if (!figure->is_number()) return {};
  if (type == kReal) return figure->get<double>();
  return figure->get<std::int64_t>();
}

}  // namespace

std::vector<Column> sweep_columns(const Suite& suite) {
  std::vector<Column> columns{{"cell", kText, "1", "identity of the cell"},
                              {"status", kText, "1", "done, infeasible, memory, timeout or error"},
                              {"reason", kText, "1", "why it is not done"}};
  for (std::size_t axis = 0; axis < suite.axes.size(); ++axis) {
    columns.push_back({suite.axes[axis], type_of_axis(suite, axis), "1", "axis of the sweep"});
  }
  for (const auto& more : {figure_columns(), closing_columns()}) {
    columns.insert(columns.end(), more.begin(), more.end());
  }
  return columns;
}

std::vector<Value> sweep_row(const std::vector<Column>& columns, const SweepCell& cell, const json& document) {
  std::vector<Value> row;
  row.emplace_back(cell.id);
  row.push_back(value_of(find(document, "status"), kText));
  row.push_back(value_of(find(document, "reason"), kText));
  for (std::size_t axis = 0; axis < cell.settings.size(); ++axis) {
    row.push_back(axis_value(cell.settings[axis], columns[3 + axis].type));
  }
  static const json kNothing = json::object();
  const auto result = document.find("result");
  for (const Column& column : figure_columns()) {
    row.push_back(value_of(find(result == document.end() ? kNothing : *result, column.name), column.type));
  }
  row.push_back(value_of(find(document, "kind"), kText));
  row.push_back(value_of(find(document, "time_s"), kReal));
  row.push_back(value_of(find(document, "peak_rss_bytes"), kBytes));
  return row;
}

}  // namespace millrace::app
