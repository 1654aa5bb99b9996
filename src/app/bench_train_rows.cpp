// Text and JSON of measured training.
#include "app/bench_train_rows.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "planner/tables.h"

namespace millrace::app {
namespace {

using nlohmann::json;

std::string speeds(const json& side) {
  if (side.is_null()) return "-";
  const json& spread = side.at("samples_per_s");
  return fmt::format("{:.4g} ({:.4g} to {:.4g})", spread.at("median").get<double>(), spread.at("least").get<double>(),
                     spread.at("most").get<double>());
}

std::string ratios(const json& spread) {
  if (spread.is_null()) return "-";
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", spread.at("median").get<double>(), spread.at("least").get<double>(),
                     spread.at("most").get<double>());
}

std::string memory(const json& side) {
  if (side.is_null()) return "-";
  std::vector<std::string> ranks;
  for (const json& rank : side.at("memory_mib")) ranks.push_back(fmt::format("{:.0f}", rank.get<double>()));
  return join(ranks, " + ");
}

std::string number_or_dash(const json& value) {
  return value.is_number() ? fmt::format("{:.2f}", value.get<double>()) : "-";
}

/// The speeds of all rows; columns of what the list or the command line leaves out are not there.
planner::Table speeds_table(const std::vector<json>& rows) {
  const auto any = [&](const char* key) {
    return std::any_of(rows.begin(), rows.end(), [&](const json& row) { return !row.at(key).is_null(); });
  };
  const bool peers = any("peer"), goals = peers && any("goal"), memory_goals = peers && any("memory_goal");
  planner::Table table;
  const auto add = [](std::vector<std::string>& to, bool wanted, std::string cell) {
    if (wanted) to.push_back(std::move(cell));
  };
  table.columns = {"case", "samples/s"};
  add(table.columns, peers, "peer");
  add(table.columns, peers, "ratio");
  add(table.columns, goals, "goal");
  table.columns.emplace_back("MiB");
  add(table.columns, peers, "peer");
  add(table.columns, peers, "ratio");
  add(table.columns, memory_goals, "goal");
  for (const json& row : rows) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells = {row.at("case").get<std::string>(), speeds(row.at("ours"))};
    add(cells, peers, speeds(row.at("peer")));
    add(cells, peers, ratios(row.at("ratio")));
    add(cells, goals, number_or_dash(row.at("goal")));
    cells.push_back(memory(row.at("ours")));
    add(cells, peers, memory(row.at("peer")));
    add(cells, peers, number_or_dash(row.at("memory_ratio")));
    add(cells, memory_goals, number_or_dash(row.at("memory_goal")));
  }
  return table;
}

std::string kernels_text(const json& kernels) {
  planner::Table kinds{{"kind", "forward", "backward", "share"}, {}};
  const double total = kernels.at("seconds").get<double>();
  for (const json& kind : kernels.at("kinds")) {
    const double forward = kind.at("forward_s").get<double>(), backward = kind.at("backward_s").get<double>();
    kinds.rows.push_back({kind.at("kind").get<std::string>(), format(Seconds(forward)), format(Seconds(backward)),
                          fmt::format("{:.1f} %", 100 * (forward + backward) / total)});
  }
  kinds.rows.push_back(
      {"all kernels", format(Seconds(total)), "",
       fmt::format("{:.0f} % of peak, {:.0f} % of floor", 100 * kernels.at("share_of_peak").get<double>(),
                   100 * kernels.at("share_of_floor").get<double>())});
  return table_text(kinds);
}

constexpr const char* kLegend =
    "speeds: of the fastest iteration of each run, median over runs with least and most\n"
    "ratios: run by run, in alternation; memory: peak of each process, of the fullest rank\n"
    "kinds: processor time of one thread on the whole mini-batch, without communication\n"
    "floor: its products and convolutions alone, each by the fastest call for its shape\n";

}  // namespace

void TrainRows::add(const json& row) {
  if (as_json_) return list_.add(row);
  rows_.push_back(row);
  std::string text = table_text(speeds_table({row})) + "\n";
  if (!row.at("kernels").is_null()) text += kernels_text(row.at("kernels")) + "\n";
  if (row.at("status") != "done") text += fmt::format("failed: {}\n\n", row.at("why_not").get<std::string>());
  print(text);
}

void TrainRows::finish() {
  if (as_json_) return list_.finish();
  print((rows_.size() > 1 ? table_text(speeds_table(rows_)) + "\n" : "") + kLegend);
}

}  // namespace millrace::app
