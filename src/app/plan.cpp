// `millrace plan`: the best plans, the stages of the best, and why others were refused.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/planning.h"
#include "app/print.h"
#include "app/session.h"
#include "base/log.h"
#include "plan/plan_text.h"
#include "storage/write_aside.h"

namespace millrace::app {
namespace {

void print_tables(const Session& session, const Planned& planned, const Arguments& arguments) {
  if (planned.ranking.plans.empty()) {
    print(planned.why_not + "\n");
  } else {
    const plan::PlanReport& best = planned.ranking.plans.front().report;
    print(table_text(planner::plans_table(planned.ranking.plans)) + "\n");
    if (arguments.explain) {
      print_explanation(best, session.graph);
    } else {
      print(table_text(planner::stages_table(best, session.graph)));
    }
  }
  if (arguments.explain && !planned.ranking.refusals.empty()) {
    print("refused:\n" + table_text(planner::refusals_table(planned.ranking.refusals)));
  }
}

nlohmann::json document(const Session& session, const Planned& planned) {
  nlohmann::json plans = nlohmann::json::array();
  for (const plan::Candidate& candidate : planned.ranking.plans)
    plans.push_back(plan_json(candidate.report, session.graph));
  return {{"problem", problem_json(session.graph, session.cluster.size(), session.experiment.data.batch)},
          {"plans", std::move(plans)},
          {"why_not", planned.why_not}};
}

}  // namespace

ExitCode plan(const Arguments& arguments, comm::World& world) {
  const int ranks = world.size() > 1 ? world.size() : arguments.ranks.value_or(1);
  const Session session = open_session(arguments, world, ranks);
  const std::string feasible = world.on_root_then_all([&] {
    const Planned planned = make_plans(session, arguments);
    if (arguments.format == Format::json) {
      print(document(session, planned));
    } else {
      print_tables(session, planned, arguments);
    }
    if (planned.ranking.plans.empty()) return std::string();
    if (arguments.output) {
      const auto existing = arguments.overwrite ? storage::Existing::replace : storage::Existing::refuse;
      storage::write_text_aside(*arguments.output, existing,
                                plan::to_yaml(planned.ranking.plans.front().plan, session.graph));
      log::notice(fmt::format("wrote {}", *arguments.output));
    }
    return std::string("feasible");
  });
  return feasible.empty() ? ExitCode::infeasible : ExitCode::done;
}

}  // namespace millrace::app
