// A program as a job, and the job's steps back as instructions.
#include "sim/simulate.h"

#include <algorithm>
#include <tuple>

#include "program/liveness.h"
#include "sim/fold.h"
#include "sim/from_program.h"

namespace millrace::sim {
namespace {

struct LabelledRow {
  std::int32_t rank = 0;
  std::int32_t label = 0;
  double start = 0, end = 0;
};

// Rows of one instruction's steps become one; waiting for a reduction is no part of the update behind it.
std::vector<LabelledRow> by_instruction(const Job& job, const std::vector<StepRow>& rows) {
  std::vector<LabelledRow> labelled;
  for (const StepRow& row : rows) {
    const Step& step = job.programs[static_cast<std::size_t>(row.rank)][static_cast<std::size_t>(row.step)];
    if (step.kind == StepKind::wait_collective) continue;
    labelled.push_back({row.rank, step.label, row.start.value(), row.end.value()});
  }
  std::sort(labelled.begin(), labelled.end(), [](const LabelledRow& a, const LabelledRow& b) {
    return std::tuple(a.rank, a.label, a.start) < std::tuple(b.rank, b.label, b.start);
  });
  std::vector<LabelledRow> out;
  for (const LabelledRow& row : labelled) {
    if (!out.empty() && out.back().rank == row.rank && out.back().label == row.label) {
      out.back().end = std::max(out.back().end, row.end);
    } else {
      out.push_back(row);
    }
  }
  return out;
}

}  // namespace

std::optional<double> Simulation::hidden(Traffic traffic) const {
  const auto kind = static_cast<std::size_t>(traffic);
  Seconds all{}, seen{};
  for (const auto& by_kind : transfer) all += by_kind[kind];
  for (const auto& by_kind : exposed) seen += by_kind[kind];
  if (all <= Seconds{}) return std::nullopt;
  return 1 - seen / all;
}

namespace {

// From one iteration's end to the next one's, in steady state: what fills and what drains a program that does not flush
// is left out where there are iterations in between.
Seconds period(const std::vector<double>& ends, int overlap) {
  const auto n = static_cast<std::int64_t>(ends.size());
  std::int64_t first = overlap, last = n - 1 - overlap;
  if (last <= first) {
    first = 0;
    last = n - 1;
  }
  if (last == first) return Seconds(ends.front());
  return Seconds((ends[static_cast<std::size_t>(last)] - ends[static_cast<std::size_t>(first)]) /
                 static_cast<double>(last - first));
}

std::array<Seconds, kTrafficKinds> per_iteration(std::array<Seconds, kTrafficKinds> all, double iterations) {
  for (Seconds& kind : all) kind = kind / iterations;
  return all;
}

}  // namespace

Simulation simulate(const Graph& graph, const Program& program, const SimCosts& costs, const Options& options,
                    std::span<const Straggler> stragglers) {
  ProgramJob translated = job_of(graph, program, costs, options.iterations);
  slow_down(translated.job, stragglers);
  Options once = options;  // the job holds all iterations
  once.iterations = 1;
  once.rows = true;
  const Outcome outcome = run(translated.job, once);
  Simulation out;
  std::vector<double> ends(static_cast<std::size_t>(options.iterations), 0.0);
  for (const LabelledRow& row : by_instruction(translated.job, outcome.rows)) {
    const auto rank = static_cast<std::size_t>(row.rank);
    const UnrolledInstruction& at = translated.labels[rank][static_cast<std::size_t>(row.label)];
    double& end = ends[static_cast<std::size_t>(at.iteration)];
    end = std::max(end, row.end);
    const auto position = static_cast<std::size_t>(at.position);
    out.timeline.rows.push_back({row.rank, at.position, program.ranks[rank].instructions[position], Seconds(row.start),
                                 Seconds(row.end), at.iteration});
  }
  const double n = options.iterations;
  out.makespan = Seconds(ends.front());
  out.iteration_time = period(ends, program.overlap);
  Seconds idle{};
  for (const RankOutcome& rank : outcome.ranks) {
    out.busy.push_back(rank.busy / n);
    out.idle.push_back(std::max(Seconds(0), out.iteration_time - rank.busy / n));
    idle += out.idle.back();
    out.exposed.push_back(per_iteration(rank.exposed, n));
    out.transfer.push_back(per_iteration(rank.transfer, n));
  }
  const double capacity = out.iteration_time.value() * static_cast<double>(outcome.ranks.size());
  out.bubble_fraction = capacity > 0 ? idle.value() / capacity : 0.0;
  out.peak_live_micro_batches = peak_live_micro_batches(program);
  return out;
}

}  // namespace millrace::sim
