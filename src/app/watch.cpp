// `millrace watch`: how far a run or a sweep is, from its results file, while it goes on.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/print.h"
#include "base/text.h"
#include "record/cells_file.h"
#include "record/results.h"
#include "storage/file.h"

namespace millrace::app {
namespace {

using nlohmann::json;
using record::DataTable;

// One look at the file.
struct Look {
  bool sweep = false;
  std::string status;  // record::status_of()
  std::int64_t planned = 0;
  DataTable rows;
};

Look look_at(const std::filesystem::path& path) {
  Look look;
  look.status = record::status_of(path);  // before the rows, which go on
  const storage::File file = storage::File::open(path);
  look.sweep = record::is_cells_file(file);
  if (!look.sweep && !file.contains("iterations")) {
    throw InvalidInput(path.string() + ": holds results of neither a run nor a sweep");
  }
  const std::string table = look.sweep ? "cells" : "iterations";
  look.planned = look.sweep ? file.integer("cells") : static_cast<std::int64_t>(file.table(table).capacity());
  look.rows = record::read_table(file, table);
  return look;
}

// A writer may be in the middle of a row, or rename the file: a moment later it can be read.
Look look_again(const std::filesystem::path& path) {
  constexpr int kTries = 5;
  for (int left = kTries;; --left) {
    try {
      return look_at(path);
    } catch (const Error&) {
      if (left == 1) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

double number(const DataTable& rows, std::size_t row, const char* column) {
  const auto index = rows.find(column);
  return index ? record::number_of(rows.rows[row][*index]).value_or(std::nan("")) : std::nan("");
}

json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

// Of the last rows, since rows before them may have been slower or faster.
double seconds_per_row(const Look& look) {
  constexpr std::size_t kLast = 50;
  const std::size_t count = std::min(kLast, look.rows.rows.size());
  std::vector<double> times;
  for (std::size_t i = look.rows.rows.size() - count; i < look.rows.rows.size(); ++i) {
    const double time = number(look.rows, i, look.sweep ? "cell_time_s" : "time_s");
    if (std::isfinite(time)) times.push_back(time);
  }
  if (times.empty()) return std::nan("");
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

std::string state_of(const Look& look) {
  return look.status == record::kKilled ? "ended without a word: killed" : look.status;
}

std::string left_text(const Look& look) {
  const auto rows = static_cast<std::int64_t>(look.rows.rows.size());
  const double each = seconds_per_row(look);
  if (look.status != "running" || !std::isfinite(each)) return "";
  const std::string left = format(Seconds(each * static_cast<double>(look.planned - rows)));
  return look.sweep ? fmt::format("  {} of cells left", left) : fmt::format("  {} left", left);
}

json row_json(const Look& look, std::size_t row) {
  json document = json::object();
  for (std::size_t c = 0; c < look.rows.columns.size(); ++c) {
    const record::Value& value = look.rows.rows[row][c];
    json& field = document[look.rows.columns[c].name];
    if (const auto* integer = std::get_if<std::int64_t>(&value)) field = *integer;
    if (const auto* real = std::get_if<double>(&value)) field = finite(*real);
    if (const auto* text = std::get_if<std::string>(&value)) field = *text;
  }
  return document;
}

std::string row_text(const Look& look, std::size_t row) {
  const std::size_t number_of_row = row + 1;
  if (look.sweep) {
    const auto text = [&](const char* column) {
      const std::string whole = record::to_text(look.rows.rows[row][look.rows.at(column)]);
      return whole.substr(0, whole.find('\n'));
    };
    return fmt::format("cell {}/{}  {}  {}  {}", number_of_row, look.planned, text("cell"), text("status"),
                       text("reason"));
  }
  return fmt::format("iteration {}/{}  epoch {:.0f}  loss {:.4f}  {:.0f} samples/s",
                     number(look.rows, row, "iteration"), look.planned, number(look.rows, row, "epoch"),
                     number(look.rows, row, "loss"), number(look.rows, row, "throughput"));
}

std::string summary_text(const Look& look) {
  return fmt::format("{}: {} of {} {}{}\n", state_of(look), look.rows.rows.size(), look.planned,
                     look.sweep ? "cells" : "iterations", left_text(look));
}

// The cells of a sweep stand in its order, not in that of their ends: new ones may be anywhere.
std::string name_of(const Look& look, std::size_t row) {
  return record::to_text(look.rows.rows[row][look.rows.at(look.sweep ? "cell" : "iteration")]);
}

// Rows that were not shown before; of the first look in words the last ones only.
void show(const Look& look, const Arguments& arguments, std::set<std::string>& shown) {
  constexpr std::size_t kFirstLook = 10;
  std::vector<std::size_t> fresh;
  for (std::size_t row = 0; row < look.rows.rows.size(); ++row) {
    if (shown.insert(name_of(look, row)).second) fresh.push_back(row);
  }
  const bool json_lines = arguments.format == Format::json;
  if (!json_lines && fresh.size() == shown.size() && fresh.size() > kFirstLook) {
    fresh.erase(fresh.begin(), fresh.end() - kFirstLook);
  }
  std::string lines;
  for (const std::size_t row : fresh) lines += (json_lines ? row_json(look, row).dump() : row_text(look, row)) + "\n";
  if (!lines.empty()) print(lines);
}

}  // namespace

ExitCode watch(const Arguments& arguments, comm::World& world) {
  if (!world.root()) return ExitCode::done;
  const std::filesystem::path file = arguments.files.front();
  std::set<std::string> shown;
  for (;;) {
    const Look look = look_again(file);
    show(look, arguments, shown);
    const bool over = look.status != "running";
    if (!arguments.follow || over) {
      if (arguments.format == Format::json) {
        print(json{{"status", state_of(look)}, {"rows", shown.size()}, {"planned", look.planned}}.dump() + "\n");
      } else {
        print(summary_text(look));
      }
      return ExitCode::done;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

}  // namespace millrace::app
