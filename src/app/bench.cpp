// `millrace bench planner`: every partitioner on every workload of a list, each in a process of its own, beside what
// others reached.
#include <cstdlib>
#include <filesystem>

#include <sys/resource.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/bench_growth.h"
#include "app/bench_list.h"
#include "app/bench_table.h"
#include "app/child_process.h"
#include "app/commands.h"
#include "app/planning.h"
#include "app/print.h"
#include "base/log.h"
#include "base/text.h"

namespace millrace::app {
namespace {

using nlohmann::json;

constexpr const char* kStandardList = "experiments/paper/planner_workloads.yaml";

double user_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

// In the child: reads the workload, plans it, and gives the row's figures. Reading is not counted as planning.
json plan_case(const BenchCase& one, const Arguments& arguments) {
  config::Problems problems;
  const Session session = planning_session(experiment_from_node(one.experiment, problems), arguments.ranks.value_or(1));
  json row{{"ops", session.graph.size()},
           {"devices", session.cluster.size()},
           {"objective", session.experiment.plan.objective}};
  const double before = user_seconds();
  const Planned planned = make_plans(session, arguments);
  row["cpu_s"] = user_seconds() - before;
  if (planned.ranking.plans.empty()) {
    row["status"] = "infeasible";
    row["why_not"] = planned.why_not;
    return row;
  }
  const json best = plan_json(planned.ranking.plans.front().report, session.graph);
  for (const std::string& column : bench_columns()) {
    if (best.contains(column) && !row.contains(column)) row[column] = best.at(column);
  }
  row["stages"] = best.at("stages").size();
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
    row["why_not"] = "there is no " + one.absent;
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
  return row;
}

std::filesystem::path workloads_folder(const Arguments& arguments) {
  if (!arguments.workloads.empty()) return arguments.workloads;
  const char* named = std::getenv("MILLRACE_WORKLOADS");
  return named != nullptr ? named : "../shared/workloads";
}

}  // namespace

ExitCode bench(const Arguments& arguments, comm::World& world) {
  if (!world.root()) return ExitCode::done;
  const std::string& name = arguments.files.front();
  if (name != "planner" && name != "growth") {
    throw InvalidInput(unknown_name("benchmark", name, std::vector<std::string>{"planner", "growth"}));
  }
  if (world.size() > 1) {
    throw InvalidInput(fmt::format("bench {} runs alone, without a launcher: it measures one process", name));
  }
  if (name == "growth") return bench_growth(arguments);
  const std::string list = arguments.data.empty() ? kStandardList : arguments.data;
  const std::vector<BenchCase> cases = read_bench_list(list, workloads_folder(arguments));
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
