// `millrace simulate`: one iteration of the best plan in simulated time, and its picture.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/planning.h"
#include "app/prediction.h"
#include "app/print.h"
#include "app/session.h"
#include "base/log.h"
#include "base/text.h"
#include "record/timeline_svg.h"
#include "storage/write_aside.h"

namespace millrace::app {
namespace {

void print_ranks(const sim::Simulation& run) {
  planner::Table table{{"rank", "busy", "idle", "live micro-batches"}, {}};
  for (std::size_t r = 0; r < run.busy.size(); ++r) {
    table.rows.push_back(
        {std::to_string(r), format(run.busy[r]), format(run.idle[r]), std::to_string(run.peak_live_micro_batches[r])});
  }
  print(table_text(table));
}

}  // namespace

ExitCode simulate(const Arguments& arguments, comm::World& world) {
  const int ranks = world.size() > 1 ? world.size() : arguments.ranks.value_or(1);
  const Session session = open_session(arguments, world, ranks);
  Chosen chosen = choose_plan(session, arguments, world);
  if (!world.root()) return ExitCode::done;
  constexpr std::int64_t kAnyTag = std::int64_t{1} << 30;
  const Program program = training_program(session.graph, chosen.plan, session.experiment.data.batch, kAnyTag);
  const sim::Simulation run = predict(session, program);
  plan::PlanReport& report = *chosen.report;
  take_times(session, run, report);
  const std::string facts = fmt::format("iteration {} · {:.1f} samples/s · bubble {:.1f} %", format(run.iteration_time),
                                        report.throughput_samples_per_s, run.bubble_fraction * 100);
  if (!arguments.svg.empty()) {
    const std::string title = fmt::format("{}: {} pipelines, {} micro-batches, {}", session.experiment.name,
                                          report.pipelines, report.micro_batches, report.schedule);
    storage::write_text_aside(arguments.svg, storage::Existing::replace,
                              record::timeline_svg(program, run.timeline, {title, facts}));
    log::notice(fmt::format("wrote {}", arguments.svg));
  }
  if (arguments.format == Format::json) {
    print(
        nlohmann::json{{"problem", problem_json(session.graph, session.cluster.size(), session.experiment.data.batch)},
                       {"kind", "simulated"},
                       {"plans", {plan_json(report, session.graph)}}});
    return ExitCode::done;
  }
  if (arguments.explain) print_explanation(session, report);
  print("simulated: " + facts + "\n\n");
  print_ranks(run);
  return ExitCode::done;
}

}  // namespace millrace::app
