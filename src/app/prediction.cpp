// Costs of the session's cluster, handed to the simulator.
#include "app/prediction.h"

#include <memory>
#include <utility>

#include "app/memory_forecast.h"
#include "app/planning.h"
#include "planner/simulated.h"

namespace millrace::app {

namespace {

std::vector<sim::Straggler> stragglers_of(const Session& session) {
  const SimulationSection& section = session.experiment.simulation;
  std::vector<sim::Straggler> stragglers = sim::random_stragglers(session.experiment.seed, session.cluster.size(),
                                                                  section.straggler_fraction, section.straggler_factor);
  if (session.measured_speeds) return stragglers;  // they have it already
  for (const auto& [rank, factor] : session.experiment.slowdown) stragglers.push_back({rank, factor});
  return stragglers;
}

// Costs of the session's cluster.
struct PredictionCosts {
  explicit PredictionCosts(const Session& session)
      : model(make_costs(session)),
        costs(planner::costs_of(*model, session.cluster, kernels::carried_bytes(session.experiment.train.precision),
                                session.experiment.simulation.options)) {}

  std::unique_ptr<const cost::CostModel> model;
  sim::SimCosts costs;
};

sim::Simulation simulate_as_asked(const Session& session, const Program& program, const sim::SimCosts& costs,
                                  const std::vector<sim::Straggler>& stragglers) {
  sim::Options options = session.experiment.simulation.options;
  options.iterations += 2 * program.overlap;
  return sim::simulate(session.graph, program, costs, options, stragglers);
}

}  // namespace

sim::Simulation predict(const Session& session, const Program& program) {
  const PredictionCosts known(session);
  return simulate_as_asked(session, program, known.costs, stragglers_of(session));
}

Prediction predict_plan(const Session& session, const Plan& plan, bool every_rank) {
  constexpr std::int64_t kAnyTag = std::int64_t{1} << 30;
  const PredictionCosts known(session);
  const std::vector<sim::Straggler> stragglers = stragglers_of(session);
  const std::int64_t batch = session.experiment.data.batch;
  Prediction out;
  // Folding changes the number of owners, by which an optimizer is sharded.
  out.folded = every_rank || session.experiment.train.shard_optimizer
                   ? planner::unfolded(plan, batch)
                   : planner::fold_plan(plan, session.graph, batch, session.cluster, known.costs,
                                        session.experiment.simulation.options, stragglers);
  out.program = training_program(session, out.folded.plan, out.folded.batch, kAnyTag);
  out.run = planner::unfold(simulate_as_asked(session, out.program, planner::folded_costs(known.costs, out.folded),
                                              planner::folded_stragglers(stragglers, out.folded)),
                            out.folded);
  if (auto held = MemoryForecast(session).of(plan)) {
    out.memory = std::move(*held);
  } else {
    const plan::AnalyticBytes bytes(session.graph, training_bytes(session.experiment), out.program.receive_window);
    out.memory = planner::unfold(planner::program_memory(out.program, bytes), out.folded);
  }
  return out;
}

std::optional<sim::Goodput> goodput(const Session& session) {
  if (!session.experiment.simulation.failures) return std::nullopt;
  sim::Failures failures = *session.experiment.simulation.failures;
  failures.devices = session.cluster.size();
  return sim::goodput(failures);
}

}  // namespace millrace::app
