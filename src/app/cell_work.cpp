// Plans and simulates cells; a run is a job of its own.
#include "app/cell_work.h"

#include <new>

#include <sys/resource.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cell_run.h"
#include "app/planning.h"
#include "app/prediction.h"
#include "app/print.h"
#include "app/step_machines.h"
#include "base/text.h"
#include "config/document.h"
#include "plan/plan_text.h"
#include "planner/simulated.h"
#include "planner/step_validation.h"

namespace millrace::app {
namespace {

using nlohmann::json;

void limit_memory(const std::optional<Bytes>& limit) {
  if (!limit) return;
  const auto bytes = static_cast<rlim_t>(limit->value());
  const rlimit both{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &both);
}

json ranks_json(const sim::Simulation& run) {
  json ranks = json::array();
  for (std::size_t r = 0; r < run.busy.size(); ++r) {
    ranks.push_back({{"busy_s", run.busy[r].value()},
                     {"idle_s", run.idle[r].value()},
                     {"exposed_p2p_s", run.exposed[r][0].value()},
                     {"exposed_gradients_s", run.exposed[r][1].value()},
                     {"exposed_tensor_s", run.exposed[r][2].value()}});
  }
  return ranks;
}

json plan_cell(const CellTask& task) {
  const Session session = planning_session(experiment_from_text(task.effective), task.ranks);
  Arguments arguments;
  arguments.command = name_of(task.command);
  arguments.time_limit_s = task.time_limit_s;
  arguments.ranks = task.ranks;
  arguments.top = 1;
  Planned planned = make_plans(session, arguments);
  if (planned.ranking.plans.empty()) return failed_cell("infeasible", planned.why_not);
  plan::Candidate& best = planned.ranking.plans.front();
  json document{{"status", "done"}, {"reason", ""}, {"kind", "simulated"}};
  if (task.command == CellCommand::simulate) {
    const Prediction prediction = predict_plan(session, best.plan);
    const sim::Simulation& run = prediction.run;
    planner::take_memory(prediction.memory, best.report);
    planner::take_times(run, session.experiment.data.batch, best.report);
    document["ranks"] = ranks_json(run);
  }
  json result = plan_json(best.report, session.graph);
  // Names of thousands of operators in thousands of cells: the plan's ranges say the same.
  for (json& stage : result["stages"]) stage.erase("ops");
  result["stage_count"] = best.report.stages.size();
  result["devices"] = session.cluster.size();
  result["batch"] = session.experiment.data.batch;
  document["result"] = std::move(result);
  document["plan"] = plan::to_yaml(best.plan, session.graph);
  return document;
}

// Errors of the predictions of one set of measured steps.
json prediction_cell(const CellTask& task) {
  config::Problems problems;
  const config::Node root = config::load_text(task.effective, nullptr, problems);
  problems.throw_if_any();
  const std::string set = root.find("set")->text;
  StepMachines machines;
  const planner::Validation validation = planner::validate_predictions(
      planner::read_measured_steps(root.find("steps")->text),
      [&](const planner::MeasuredStep& row) -> const cluster::Cluster& { return machines.of(row); });
  std::vector<std::string> names;
  for (const planner::SetErrors& one : validation.sets) {
    names.push_back(one.set);
    if (one.set != set) continue;
    const planner::ErrorSummary& errors = one.summary;
    if (errors.runs == 0) return failed_cell("error", "no row of the set could be predicted");
    return {{"status", "done"},
            {"reason", ""},
            {"kind", "simulated"},
            {"result",
             {{"rows", errors.runs},
              {"mape", errors.mape},
              {"median", errors.median},
              {"p90", errors.p90},
              {"worst", errors.worst},
              {"bias", errors.bias},
              {"regret", errors.regret}}}};
  }
  throw InvalidInput(unknown_name("set", set, names));
}

}  // namespace

json failed_cell(const std::string& status, const std::string& reason) {
  return {{"status", status}, {"reason", reason}, {"kind", ""}};
}

std::string to_text(const CellTask& task) {
  return json{{"command", static_cast<int>(task.command)},
              {"effective", task.effective},
              {"ranks", task.ranks},
              {"time_limit_s", task.time_limit_s ? json(*task.time_limit_s) : json()},
              {"time_s", task.limits.time ? json(task.limits.time->value()) : json()},
              {"memory", task.limits.memory ? json(task.limits.memory->value()) : json()},
              {"folder", task.folder},
              {"id", task.id}}
      .dump();
}

CellTask cell_task_from_text(const std::string& text) {
  const json document = json::parse(text);
  CellTask task;
  task.command = static_cast<CellCommand>(document.at("command").get<int>());
  task.effective = document.at("effective").get<std::string>();
  task.ranks = document.at("ranks").get<int>();
  if (!document.at("time_limit_s").is_null()) task.time_limit_s = document.at("time_limit_s").get<double>();
  if (!document.at("time_s").is_null()) task.limits.time = Seconds(document.at("time_s").get<double>());
  if (!document.at("memory").is_null()) task.limits.memory = Bytes(document.at("memory").get<std::int64_t>());
  task.folder = document.at("folder").get<std::string>();
  task.id = document.at("id").get<std::string>();
  return task;
}

json work_on(const CellTask& task) {
  if (task.command == CellCommand::run) return run_cell(task);
  limit_memory(task.limits.memory);
  try {
    return task.command == CellCommand::predict ? prediction_cell(task) : plan_cell(task);
  } catch (const std::bad_alloc&) {
    const std::string allowed =
        task.limits.memory ? fmt::format(" (limits.memory {})", format(*task.limits.memory)) : "";
    return failed_cell("memory", "the system refused an allocation" + allowed);
  }
}

}  // namespace millrace::app
