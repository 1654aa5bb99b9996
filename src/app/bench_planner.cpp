// `millrace bench planner`: every partitioner on every workload of a list, each in a process of its own, beside what
// others reached.
#include <ctime>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/bench_list.h"
#include "app/bench_table.h"
#include "app/benchmarks.h"
#include "app/child_process.h"
#include "app/planning.h"
#include "app/print.h"
#include "app/shipped_folder.h"
#include "base/log.h"
#include "base/text.h"

namespace millrace::app {
namespace {

using nlohmann::json;

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// In the child: reads the workload, plans it, and gives the row's figures. Reading is not counted as planning.
json plan_case(const BenchCase& one, const Arguments& arguments) {
  config::Problems problems;
  const Session session = planning_session(experiment_from_node(one.experiment, problems), arguments.ranks.value_or(1));
  json row{{"ops", session.graph.size()},
           {"devices", session.cluster.size()},
           {"objective", session.experiment.plan.objective}};
  const double before = cpu_seconds();
  const Planned planned = make_plans(session, arguments);
  row["cpu_s"] = cpu_seconds() - before;
  if (planned.ranking.plans.empty()) {
    row["status"] = "infeasible";
    row["why_not"] = planned.why_not;
    return row;
  }
  const plan::PlanReport& report = planned.ranking.plans.front().report;
  const json best = figures_json(report);
  for (const std::string& column : bench_columns()) {
    if (best.contains(column) && !row.contains(column)) row[column] = best.at(column);
  }
  row["stages"] = report.stages.size();
  row["status"] = "done";
  return row;
}

json run_case(const BenchCase& one, const Arguments& arguments) {
  json row = json::object();
  for (const std::string& column : bench_columns()) row[column] = nullptr;
  row["stopped_by"] = "";
  row["why_not"] = "";
  row["objective"] = "";
  if (!one.absent.empty()) {
    row["status"] = "skipped";
    row["why_not"] = one.absent;
  } else {
    const ChildOutcome child = in_child([&] { return plan_case(one, arguments).dump(); });
    if (child.code == ExitCode::done) {
      row.update(json::parse(child.text));
    } else {
      row["status"] = "error";
      row["why_not"] = child.text;
    }
    row["peak_rss_bytes"] = child.peak_rss_bytes;
  }
  row["workload"] = one.workload;
  row["partitioner"] = one.partitioner;
  row["published"] = one.published ? json(*one.published) : json(nullptr);
  row["published_cpu_s"] = one.published_cpu ? json(one.published_cpu->value()) : json(nullptr);
  return row;
}

std::filesystem::path list_file(const Arguments& arguments) {
  if (!arguments.data.empty()) return arguments.data;
  const std::filesystem::path standard = "experiments/paper/planner_workloads.yaml";
  if (const auto found = find_shipped(standard)) return *found;
  std::vector<std::string> places;
  for (const std::filesystem::path& place : shipped_places(standard)) places.push_back(place.string());
  throw InvalidInput(
      fmt::format("the standard list is not there; looked for {}; name a list with --data", join(places, ", ")));
}

// \throws InvalidInput  when nothing is left.
void keep_only(const std::string& glob, const std::string& list, std::vector<BenchCase>& cases) {
  std::vector<std::string> names;
  for (const BenchCase& one : cases) {
    if (names.empty() || names.back() != one.workload) names.push_back(one.workload);
  }
  std::erase_if(cases, [&](const BenchCase& one) { return !matches_glob(glob, one.workload); });
  if (cases.empty())
    throw InvalidInput(fmt::format("--only: no workload of {} matches '{}'; it has: {}", list, glob, join(names)));
}

}  // namespace

ExitCode bench_planner(const Arguments& arguments) {
  const std::filesystem::path list = list_file(arguments);
  std::vector<BenchCase> cases = read_bench_list(list, workloads_folder(arguments.workloads)).cases;
  if (!arguments.only.empty()) keep_only(arguments.only, list.string(), cases);
  std::vector<json> rows;
  bool whole = true;
  for (const BenchCase& one : cases) {
    rows.push_back(run_case(one, arguments));
    whole = whole && rows.back().at("status") != "error";
    log::notice(fmt::format("{} of {}: {} by {}: {}", rows.size(), cases.size(), one.workload, one.partitioner,
                            rows.back().at("status").get<std::string>()));
  }
  switch (arguments.format) {
    case Format::json:
      print(json{{"rows", rows}});
      break;
    case Format::csv:
      print(bench_csv(rows));
      break;
    case Format::table:
      print(bench_text(rows));
      break;
  }
  return whole ? ExitCode::done : ExitCode::failed;
}

}  // namespace millrace::app
