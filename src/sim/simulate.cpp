// A program as a job, and the job's steps back as instructions.
#include "sim/simulate.h"

#include <algorithm>
#include <utility>

#include "program/liveness.h"
#include "sim/from_program.h"

namespace millrace::sim {
namespace {

// Rows of one instruction's steps become one; waiting for a reduction is no part of the update behind it.
Timeline timeline_of(const Program& program, const Job& job, std::vector<StepRow> rows) {
  std::sort(rows.begin(), rows.end(),
            [](const StepRow& a, const StepRow& b) { return std::pair(a.rank, a.step) < std::pair(b.rank, b.step); });
  Timeline out;
  for (const StepRow& row : rows) {
    const Step& step = job.programs[static_cast<std::size_t>(row.rank)][static_cast<std::size_t>(row.step)];
    if (step.kind == StepKind::wait_collective) continue;
    if (!out.rows.empty() && out.rows.back().rank == row.rank && out.rows.back().position == step.label) {
      out.rows.back().end = row.end;
      continue;
    }
    const auto& list = program.ranks[static_cast<std::size_t>(row.rank)].instructions;
    out.rows.push_back({row.rank, step.label, list[static_cast<std::size_t>(step.label)], row.start, row.end});
  }
  return out;
}

}  // namespace

double Simulation::hidden(Traffic traffic) const {
  const auto kind = static_cast<std::size_t>(traffic);
  Seconds all{}, seen{};
  for (const auto& by_kind : transfer) all += by_kind[kind];
  for (const auto& by_kind : exposed) seen += by_kind[kind];
  return all > Seconds{} ? 1 - seen / all : 1.0;
}

Simulation simulate(const Graph& graph, const Program& program, const SimCosts& costs, const Options& options) {
  const Job job = job_of(graph, program, costs);
  Options once = options;
  once.iterations = 1;
  once.rows = true;
  Outcome outcome = run(job, once);
  Simulation out;
  out.timeline = timeline_of(program, job, std::move(outcome.rows));
  out.iteration_time = outcome.makespan;
  Seconds idle{};
  for (const RankOutcome& rank : outcome.ranks) {
    out.busy.push_back(rank.busy);
    out.idle.push_back(outcome.makespan - rank.busy);
    idle += out.idle.back();
    out.exposed.push_back(rank.exposed);
    out.transfer.push_back(rank.transfer);
  }
  const double capacity = outcome.makespan.value() * static_cast<double>(outcome.ranks.size());
  out.bubble_fraction = capacity > 0 ? idle.value() / capacity : 0.0;
  out.peak_live_micro_batches = peak_live_micro_batches(program);
  return out;
}

}  // namespace millrace::sim
