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
  const std::string space(width - std::min(width, width_of(cell)), ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

TableLines::TableLines(const std::vector<std::string>& columns, std::vector<std::size_t> widths)
    : columns_(columns), widths_(std::move(widths)) {
  widths_.resize(columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) widths_[c] = std::max(widths_[c], width_of(columns[c]));
}

std::string TableLines::header() const {
  std::vector<std::string> rule;
  for (const std::size_t width : widths_) rule.emplace_back(width, '-');
  return line(columns_, false) + line(rule, false);
}

std::string TableLines::line(const std::vector<std::string>& cells, bool numbers) const {
  std::string text;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    text += padded(cells[c], widths_[c], numbers && numeric(cells[c])) + (c + 1 < cells.size() ? "  " : "");
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string table_text(const planner::Table& table) {
  std::vector<std::size_t> widths(table.columns.size());
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  const TableLines lines(table.columns, std::move(widths));
  std::string text = lines.header();
  for (const auto& row : table.rows) text += lines.row(row);
  return text;
}

void JsonRows::add(const nlohmann::json& row) {
  std::string text = row.dump(2);
  const std::string inner = key_.empty() ? "\n  " : "\n    ";
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    text.replace(at, 1, inner);
  }
  const std::string before = begun_ ? "," : key_.empty() ? "[" : fmt::format("{{\n  \"{}\": [", key_);
  print(before + inner + text);
  begun_ = true;
}

void JsonRows::finish() { print(std::string(key_.empty() ? "\n]\n" : "\n  ]\n}\n")); }

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
