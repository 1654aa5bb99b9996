// Formats bench rows.
#include "app/bench_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/print.h"
#include "base/text.h"

namespace millrace::app {
namespace {

using nlohmann::json;

std::string csv_field(const json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string number(const json& value, const char* form) {
  return value.is_number() ? fmt::format(fmt::runtime(form), value.get<double>()) : "-";
}

std::string share(const json& value) {
  return value.is_number() ? fmt::format("{:.2f} %", 100 * value.get<double>()) : "-";
}

std::string ratio(const json& over, const json& under, const char* form) {
  if (!over.is_number() || !under.is_number() || under.get<double>() <= 0) return "-";
  return fmt::format(fmt::runtime(form), over.get<double>() / under.get<double>());
}

// "12,660x"; small ratios keep what tells them apart.
std::string times(const json& over, const json& under) {
  const std::string three = ratio(over, under, "{:.3g}");
  if (three == "-") return three;
  std::string text = over.get<double>() / under.get<double>() < 1000 ? three : ratio(over, under, "{:.0f}");
  if (text.find_first_not_of("0123456789") == std::string::npos) {
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  }
  return text + "x";
}

std::string one_line(std::string text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) text.replace(at, 1, "; ");
  return text;
}

}  // namespace

const std::vector<std::string>& bench_columns() {
  static const std::vector<std::string> columns{"workload",
                                                "ops",
                                                "devices",
                                                "partitioner",
                                                "objective",
                                                "objective_value",
                                                "published",
                                                "bound",
                                                "optimality_gap",
                                                "cpu_s",
                                                "published_cpu_s",
                                                "peak_rss_bytes",
                                                "iteration_time_s",
                                                "bottleneck_s",
                                                "balance",
                                                "bytes_injected",
                                                "peak_memory_bytes",
                                                "throughput_samples_per_s",
                                                "memory_efficiency",
                                                "stages",
                                                "order",
                                                "stopped_by",
                                                "status",
                                                "why_not"};
  return columns;
}

std::string bench_csv(const std::vector<json>& rows) {
  std::string text = join(bench_columns(), ",") + "\n";
  for (const json& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& column : bench_columns()) fields.push_back(csv_field(row.at(column)));
    text += join(fields, ",") + "\n";
  }
  return text;
}

std::string bench_text(const std::vector<json>& rows) {
  planner::Table table{{"workload", "operators", "devices", "partitioner", "objective", "value", "published", "of it",
                        "gap", "CPU", "faster", "memory", "stages", "note"},
                       {}};
  for (const json& row : rows) {
    const json& cpu = row.at("cpu_s");
    const json& memory = row.at("peak_rss_bytes");
    const std::string status = row.at("status").get<std::string>();
    table.rows.push_back(
        {row.at("workload").get<std::string>(), number(row.at("ops"), "{:.0f}"), number(row.at("devices"), "{:.0f}"),
         row.at("partitioner").get<std::string>(), row.at("objective").get<std::string>(),
         number(row.at("objective_value"), "{:.9g}"), number(row.at("published"), "{:.9g}"),
         ratio(row.at("objective_value"), row.at("published"), "{:.6f}"), share(row.at("optimality_gap")),
         cpu.is_number() ? format(Seconds(cpu.get<double>())) : "-", times(row.at("published_cpu_s"), cpu),
         memory.is_number() ? format(Bytes(memory.get<std::int64_t>())) : "-", number(row.at("stages"), "{:.0f}"),
         status == "done" ? row.at("stopped_by").get<std::string>()
                          : one_line(status + ": " + row.at("why_not").get<std::string>())});
  }
  return table_text(table);
}

}  // namespace millrace::app
