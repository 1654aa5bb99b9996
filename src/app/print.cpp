// Text tables and documents.
#include "app/print.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/session.h"
#include "base/errors.h"
#include "plan/published.h"
#include "planner/explain.h"

namespace millrace::app {
namespace {

// Characters, not bytes: cells may hold "·" or "µ".
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool numeric(const std::string& cell) {
  return !cell.empty() && std::isdigit(static_cast<unsigned char>(cell.front())) != 0;
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string space(width - width_of(cell), ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

std::string table_text(const planner::Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& column : table.columns) widths.push_back(width_of(column));
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  const auto add = [&](const std::vector<std::string>& row, bool header) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += padded(row[c], widths[c], !header && numeric(row[c])) + (c + 1 < row.size() ? "  " : "");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add(table.columns, true);
  std::vector<std::string> rule;
  for (const std::size_t width : widths) rule.emplace_back(width, '-');
  add(rule, true);
  for (const auto& row : table.rows) add(row, false);
  return text;
}

void print(const std::string& text) {
  errno = 0;
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
  throw SystemError(fmt::format("standard output: write failed: {}", std::strerror(errno)));
}

void print(const nlohmann::json& document) { print(document.dump(2) + "\n"); }

void print_inputs(const Session& session) {
  const Experiment& experiment = session.experiment;
  print(table_text(planner::inputs_table(session.graph, session.cluster, experiment.data.batch,
                                         kernels::carried_bytes(experiment.train.precision),
                                         experiment.plan.memory_limit)) +
        "\n");
}

void print_explanation(const Session& session, const plan::PlanReport& report) {
  print(table_text(planner::stages_table(report, session.graph)) + "\n");
  print(table_text(planner::stage_details(report, session.cluster)) + "\n");
  if (!plan::is_published(report)) print(table_text(planner::memory_table(report)) + "\n");
  print(planner::bottleneck_line(report) + "\n");
  for (const std::string& line : planner::arithmetic(report)) print(line + "\n");
  print(planner::bound_line(report) + "\n\n");
  print_inputs(session);
}

}  // namespace millrace::app
