// `millrace bench simulator`: predicted against published training steps, by set; any file of the same columns.
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/benchmarks.h"
#include "app/print.h"
#include "app/shipped_folder.h"
#include "app/step_machines.h"
#include "base/errors.h"
#include "planner/step_validation.h"

namespace millrace::app {
namespace {

using nlohmann::json;
using planner::ErrorSummary;
using planner::SetErrors;

constexpr const char* kMeasuredSteps = "data/measured_steps.csv";

std::filesystem::path data_file(const Arguments& arguments) {
  if (!arguments.data.empty()) return arguments.data;
  if (const auto file = find_shipped(kMeasuredSteps)) return *file;
  throw InvalidInput(fmt::format("{} is not there; --data names another file", kMeasuredSteps));
}

// The least of the models of a set: each is to be ranked well.
json least_spearman(const ErrorSummary& summary) {
  json least = nullptr;
  for (const planner::ModelRanks& model : summary.models) {
    if (least.is_null() || model.spearman < least.get<double>()) least = model.spearman;
  }
  return least;
}

json set_json(const SetErrors& set) {
  const ErrorSummary& s = set.summary;
  json row{{"set", set.set}, {"rows", s.runs}, {"calibration_rows", set.calibration}};
  const bool any = s.runs > 0;
  const auto figure = [&](double value) { return any ? json(value) : json(nullptr); };
  row["mape"] = figure(s.mape);
  row["median"] = figure(s.median);
  row["p90"] = figure(s.p90);
  row["worst"] = figure(s.worst);
  row["worst_id"] = s.worst_id;
  row["bias"] = figure(s.bias);
  row["spearman"] = least_spearman(s);
  row["regret"] = figure(s.regret);
  const bool timed = s.constant_mape >= 0;
  row["constant_mape"] = any && timed ? json(s.constant_mape) : json(nullptr);
  row["constant_flops_per_s"] = any && timed ? json(s.constant_rate) : json(nullptr);
  row["models"] = json::array();
  for (const planner::ModelRanks& model : s.models) {
    row["models"].push_back({{"model", model.model}, {"rows", model.runs}, {"spearman", model.spearman}});
  }
  return row;
}

json document(const planner::Validation& validation) {
  json sets = json::array(), rows = json::array(), skipped = json::array();
  for (const SetErrors& set : validation.sets) {
    sets.push_back(set_json(set));
    for (const planner::ErrorSample& sample : set.samples) {
      rows.push_back({{"id", sample.id},
                      {"set", set.set},
                      {"predicted", sample.predicted},
                      {"measured", sample.measured},
                      {"error", sample.error()}});
    }
  }
  for (const planner::SkippedRow& row : validation.skipped) skipped.push_back({{"id", row.id}, {"why", row.why}});
  return {{"sets", sets}, {"rows", rows}, {"skipped", skipped}};
}

std::string percent(const json& value) {
  return value.is_number() ? fmt::format("{:.2f} %", 100 * value.get<double>()) : "-";
}
std::string plain(const json& value) { return value.is_number() ? fmt::format("{:.3f}", value.get<double>()) : "-"; }

std::string text(const json& whole) {
  planner::Table table{{"set", "rows", "calibrated on", "mean error", "median", "p90", "worst", "of row", "rank",
                        "regret", "constant rate", "at TFLOP/s"},
                       {}};
  for (const json& set : whole.at("sets")) {
    const json& rate = set.at("constant_flops_per_s");
    table.rows.push_back({set.at("set").get<std::string>(), set.at("rows").dump(), set.at("calibration_rows").dump(),
                          percent(set.at("mape")), percent(set.at("median")), percent(set.at("p90")),
                          percent(set.at("worst")), set.at("worst_id").get<std::string>(), plain(set.at("spearman")),
                          percent(set.at("regret")), percent(set.at("constant_mape")),
                          rate.is_number() ? fmt::format("{:.0f}", rate.get<double>() / 1e12) : "-"});
  }
  std::string result = table_text(table);
  result +=
      "rank: Spearman's, least over the models of a set; regret: of the plan predicted fastest, worst over jobs;\n"
      "constant rate: error of the best predictor with one rate of operations, fitted to the rows themselves\n";
  for (const json& row : whole.at("skipped")) {
    result += fmt::format("skipped {}: {}\n", row.at("id").get<std::string>(), row.at("why").get<std::string>());
  }
  return result;
}

std::string csv(const json& whole) {
  std::string result = "set,id,predicted,measured,error\n";
  for (const json& row : whole.at("rows")) {
    result +=
        fmt::format("{},{},{:.9g},{:.9g},{:.6f}\n", row.at("set").get<std::string>(), row.at("id").get<std::string>(),
                    row.at("predicted").get<double>(), row.at("measured").get<double>(), row.at("error").get<double>());
  }
  return result;
}

}  // namespace

ExitCode bench_simulator(const Arguments& arguments) {
  const std::vector<planner::MeasuredStep> rows = planner::read_measured_steps(data_file(arguments));
  StepMachines machines;
  const planner::Validation validation = planner::validate_predictions(
      rows, [&](const planner::MeasuredStep& row) -> const cluster::Cluster& { return machines.of(row); });
  const json whole = document(validation);
  switch (arguments.format) {
    case Format::json:
      print(whole);
      break;
    case Format::csv:
      print(csv(whole));
      break;
    case Format::table:
      print(text(whole));
      break;
  }
  return ExitCode::done;
}

}  // namespace millrace::app
