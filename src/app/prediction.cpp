// Costs of the session's cluster, handed to the simulator.
#include "app/prediction.h"

#include "planner/simulated.h"

namespace millrace::app {

sim::Simulation predict(const Session& session, const Program& program) {
  const cost::AnalyticCost cost(session.graph, session.cluster, precision_name(session.experiment));
  const std::int64_t element = kernels::real_bytes(session.experiment.train.precision);
  return sim::simulate(session.graph, program, planner::costs_of(program, cost, session.cluster, element));
}

void take_times(const Session& session, const sim::Simulation& simulation, plan::PlanReport& report) {
  report.iteration_time_s = report.makespan_s = simulation.iteration_time.value();
  report.throughput_samples_per_s = static_cast<double>(session.experiment.data.batch) / report.iteration_time_s;
  report.bubble_fraction = simulation.bubble_fraction;
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  report.memory_efficiency = report.throughput_samples_per_s / (static_cast<double>(report.peak_memory_bytes) / kGiB);
}

}  // namespace millrace::app
