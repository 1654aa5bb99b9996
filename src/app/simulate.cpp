// `millrace simulate`: iterations of the best plan in simulated time, their pictures and their traces.
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/planning.h"
#include "app/prediction.h"
#include "app/print.h"
#include "app/session.h"
#include "base/count.h"
#include "base/log.h"
#include "base/text.h"
#include "planner/program_memory.h"
#include "planner/simulated.h"
#include "record/chrome_trace.h"
#include "record/timeline_svg.h"
#include "record/timeline_text.h"
#include "sim/memory_profile.h"
#include "storage/write_aside.h"

namespace millrace::app {
namespace {

using Profile = std::vector<std::vector<sim::MemorySample>>;

// What is drawn: the first iteration; all of them where iterations run into each other.
Timeline drawn(const Program& program, const Timeline& timeline) {
  if (program.overlap > 0) return timeline;
  Timeline first;
  for (const TimelineRow& row : timeline.rows) {
    if (row.iteration == 0) first.rows.push_back(row);
  }
  return first;
}

Profile profile_of(const Session& session, const Program& program, const Timeline& timeline) {
  const plan::AnalyticBytes bytes(session.graph, training_bytes(session.experiment), program.receive_window);
  return sim::memory_profile(program, timeline, [&](std::int32_t stage, int rank) {
    const ProgramStage& held = program.stages[static_cast<std::size_t>(stage)];
    const auto index = std::find(held.ranks.begin(), held.ranks.end(), rank) - held.ranks.begin();
    std::int64_t rows = 0;
    for (const std::vector<RowInterval>& intervals : held.rows) {
      rows = std::max(rows, intervals[held.replica_of(static_cast<std::size_t>(index))].size());
    }
    return planner::footprint_on(bytes.footprint(held.ops, rows, held.recompute), held,
                                 static_cast<std::size_t>(index));
  });
}

std::vector<record::TraceCounter> counters(const Profile& profile) {
  std::vector<record::TraceCounter> all;
  for (std::size_t rank = 0; rank < profile.size(); ++rank) {
    record::TraceCounter counter{static_cast<std::int32_t>(rank), "memory in bytes", {}};
    for (const sim::MemorySample& sample : profile[rank]) {
      const plan::StageMemory& m = sample.memory;
      counter.samples.push_back({sample.time,
                                 {{"weights", m.weights.value()},
                                  {"gradients", m.gradients.value()},
                                  {"optimizer", m.optimizer.value()},
                                  {"activations", m.activations.value()},
                                  {"workspace", m.workspace.value()},
                                  {"buffers", m.buffers.value()}}});
    }
    all.push_back(std::move(counter));
  }
  return all;
}

// Ranks that are alike have one row where there are more than fit on a screen or two.
constexpr std::size_t kMostRows = 64;

void print_ranks(const planner::FoldedPlan& folded, const sim::Simulation& run,
                 const std::vector<plan::StageMemory>& held) {
  planner::Table table{{"rank", "busy", "idle", "waits for messages", "for gradients", "for tensors",
                        "live micro-batches", "peak memory"},
                       {}};
  const bool alike = folded.folds() && folded.rank_of.size() > kMostRows;
  for (std::size_t r = 0; r < run.busy.size(); ++r) {
    const auto its = static_cast<std::size_t>(folded.rank_of[r]);
    const std::vector<int>& all = folded.stands_for[its];
    if (alike && all.front() != static_cast<int>(r)) continue;
    std::string name = std::to_string(r);
    if (alike && all.size() > 1) name += fmt::format(" and {} alike", all.size() - 1);
    table.rows.push_back({std::move(name), format(run.busy[r]), format(run.idle[r]), format(run.exposed[r][0]),
                          format(run.exposed[r][1]), format(run.exposed[r][2]),
                          std::to_string(run.peak_live_micro_batches[r]), format(held[r].total())});
  }
  print(table_text(table));
}

nlohmann::json ranks_json(const sim::Simulation& run, const std::vector<plan::StageMemory>& held) {
  nlohmann::json ranks = nlohmann::json::array();
  for (std::size_t r = 0; r < run.busy.size(); ++r) {
    const plan::StageMemory& m = held[r];
    ranks.push_back({{"rank", r},
                     {"busy_s", run.busy[r].value()},
                     {"idle_s", run.idle[r].value()},
                     {"exposed_s",
                      {{"p2p", run.exposed[r][0].value()},
                       {"gradients", run.exposed[r][1].value()},
                       {"tensor", run.exposed[r][2].value()}}},
                     {"peak_live_micro_batches", run.peak_live_micro_batches[r]},
                     {"peak_memory_bytes", m.total().value()},
                     {"peak_memory",
                      {{"weights", m.weights.value()},
                       {"gradients", m.gradients.value()},
                       {"optimizer", m.optimizer.value()},
                       {"activations", m.activations.value()},
                       {"workspace", m.workspace.value()},
                       {"buffers", m.buffers.value()}}}});
  }
  return ranks;
}

void write(const std::string& file, const std::string& text) {
  storage::write_text_aside(file, storage::Existing::replace, text);
  log::notice(fmt::format("wrote {}", file));
}

}  // namespace

ExitCode simulate(const Arguments& arguments, comm::World& world) {
  const int ranks = world.size() > 1 ? world.size() : arguments.ranks.value_or(1);
  const Session session = open_session(arguments, world, ranks);
  Planned planned = make_plans_together(session, arguments, world);
  plan::Candidate* chosen = nullptr;
  world.on_root_then_all([&] {
    chosen = &best_of(session, arguments, planned);
    return std::string();
  });
  if (!world.root()) return ExitCode::done;
  const bool pictures = !arguments.svg.empty() || !arguments.trace_file.empty() || arguments.timeline;
  const auto [folded, program, run, memory] = predict_plan(session, chosen->plan, pictures);
  plan::PlanReport& report = chosen->report;
  planner::take_memory(memory, report);
  planner::take_times(run, session.experiment.data.batch, report);
  const Timeline timeline = drawn(program, run.timeline);
  const Profile profile = profile_of(session, program, timeline);
  const std::optional<sim::Goodput> left = goodput(session);
  std::string facts = fmt::format("iteration {} · {:.1f} samples/s · bubble {:.1f} %", format(run.iteration_time),
                                  report.throughput_samples_per_s, run.bubble_fraction * 100);
  if (left) facts += fmt::format(" · goodput {:.1f} %", left->fraction * 100);
  const std::string title =
      fmt::format("{}: {}, {}, {}", session.experiment.name, counted(report.pipelines, "pipeline"),
                  counted(report.micro_batches, "micro-batch"), report.schedule);
  if (!arguments.svg.empty()) write(arguments.svg, record::timeline_svg(program, timeline, {title, facts}));
  if (!arguments.trace_file.empty()) {
    write(arguments.trace_file,
          record::chrome_trace(program, run.timeline, title, counters(profile_of(session, program, run.timeline))));
  }
  if (arguments.format == Format::json) {
    nlohmann::json document{
        {"problem", problem_json(session.graph, session.cluster.size(), session.experiment.data.batch)},
        {"kind", "simulated"},
        {"plans", {plan_json(report, session.graph)}},
        {"ranks", ranks_json(run, memory.ranks)}};
    if (left) {
      document["goodput"] = {{"fraction", left->fraction},
                             {"checkpoint_every_s", left->checkpoint_every.value()},
                             {"failures_per_day", left->failures_per_day}};
    }
    print(document);
    return ExitCode::done;
  }
  if (arguments.explain) print_explanation(session, report);
  print("simulated: " + facts + "\n\n");
  if (arguments.timeline) print(record::timeline_text(program, timeline) + "\n");
  print_ranks(folded, run, memory.ranks);
  return ExitCode::done;
}

}  // namespace millrace::app
