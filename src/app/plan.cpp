// `millrace plan`: the best plans, the stages of the best, and why others were refused.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output_file.h"
#include "app/planning.h"
#include "app/print.h"
#include "app/session.h"
#include "base/log.h"
#include "plan/plan_text.h"
#include "planner/explain.h"
#include "storage/write_aside.h"

namespace millrace::app {
namespace {

void print_best(const Session& session, const plan::PlanReport& best, bool explain) {
  if (explain) {
    print_explanation(session, best);
    print(planner::search_line(best) + "\n");
    return;
  }
  print(table_text(planner::stages_table(best, session.graph)) + "\n");
  print(planner::bottleneck_line(best) + "\n" + planner::bound_line(best) + "\n" + planner::search_line(best) + "\n");
  if (session.cluster.nodes().size() > 1) print(fmt::format("node crossings: {}\n", best.node_crossings));
}

void print_tables(const Session& session, const Planned& planned, const Arguments& arguments) {
  if (planned.ranking.plans.empty()) {
    print(planned.why_not + "\n");
  } else {
    print(table_text(planner::plans_table(planned.ranking.plans)) + "\n");
    print_best(session, planned.ranking.plans.front().report, arguments.explain);
    for (const std::string& choice : planned.choices) {
      if (arguments.explain) print(fmt::format("chosen by simulation: {}\n", choice));
    }
  }
  if (arguments.explain && !planned.ranking.refusals.empty()) {
    print("refused:\n" + table_text(planner::refusals_table(planned.ranking.refusals)));
  }
}

void write_plan(const Arguments& arguments, const Plan& plan, const Graph& graph) {
  const std::string& file = *arguments.output;
  storage::write_text_aside(file, existing(arguments), plan::to_yaml(plan, graph));
  log::notice(fmt::format("wrote {}", file));
}

}  // namespace

ExitCode plan(const Arguments& arguments, comm::World& world) {
  const int ranks = world.size() > 1 ? world.size() : arguments.ranks.value_or(1);
  const Session session = open_session(arguments, world, ranks);
  world.on_root_then_all([&] {  // before the search, which may take long, and before anything is printed
    if (arguments.output) storage::check_target(*arguments.output, existing(arguments));
    return std::string();
  });
  const Planned planned = make_plans_together(session, arguments, world);
  const std::string feasible = world.on_root_then_all([&] {
    if (arguments.format == Format::json) {
      print(plans_document(session, planned));
    } else {
      print_tables(session, planned, arguments);
    }
    if (planned.ranking.plans.empty()) return std::string();
    if (arguments.output) write_plan(arguments, planned.ranking.plans.front().plan, session.graph);
    return std::string("feasible");
  });
  return feasible.empty() ? ExitCode::infeasible : ExitCode::done;
}

}  // namespace millrace::app
