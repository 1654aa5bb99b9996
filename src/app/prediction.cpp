// Costs of the session's cluster, handed to the simulator.
#include "app/prediction.h"

#include "base/limits.h"
#include "planner/simulated.h"

namespace millrace::app {

sim::Simulation predict(const Session& session, const Program& program) {
  const auto cost = make_costs(session);
  const std::int64_t element = kernels::real_bytes(session.experiment.train.precision);
  const SimulationSection& section = session.experiment.simulation;
  sim::Options options = section.options;
  options.iterations += 2 * program.overlap;
  std::vector<sim::Straggler> stragglers =
      sim::random_stragglers(session.experiment.seed, static_cast<std::int64_t>(program.ranks.size()),
                             section.straggler_fraction, section.straggler_factor);
  if (!session.measured_speeds) {
    for (const auto& [rank, factor] : session.experiment.slowdown) stragglers.push_back({rank, factor});
  }
  return sim::simulate(session.graph, program, planner::costs_of(*cost, session.cluster, element, options), options,
                       stragglers);
}

std::optional<sim::Goodput> goodput(const Session& session) {
  if (!session.experiment.simulation.failures) return std::nullopt;
  sim::Failures failures = *session.experiment.simulation.failures;
  failures.devices = session.cluster.size();
  return sim::goodput(failures);
}

void take_times(const Session& session, const sim::Simulation& simulation, plan::PlanReport& report) {
  report.iteration_time_s = simulation.iteration_time.value();
  report.makespan_s = simulation.makespan.value();
  report.throughput_samples_per_s = static_cast<double>(session.experiment.data.batch) / report.iteration_time_s;
  report.bubble_fraction = simulation.bubble_fraction;
  report.hidden_communication = {simulation.hidden(sim::Traffic::p2p), simulation.hidden(sim::Traffic::gradients),
                                 simulation.hidden(sim::Traffic::tensor)};
  report.memory_efficiency = report.throughput_samples_per_s / (static_cast<double>(report.peak_memory_bytes) / kGiB);
}

}  // namespace millrace::app
