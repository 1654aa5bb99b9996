// The guess: what planning a model on a cluster takes with each partitioner, and what training it takes.
#include "app/cell_time.h"

#include <algorithm>
#include <cmath>

#include "cost/analytic.h"

namespace millrace::app {
namespace {

// Seconds per operator and device, as measured on one core.
constexpr double kStart = 0.03;
constexpr double kPlain = 1.5e-5;

// What searches take more; those that use up their time limit on graphs of some size take that at most.
double search_seconds(const std::string& partitioner, double size) {
  if (partitioner == "exact") return 3e-4 * size;
  if (partitioner == "genetic" || partitioner == "local_search" || partitioner == "interleaved") return 2e-3 * size;
  return 0;
}

double planning_seconds(const Session& session, const Arguments& arguments) {
  const double size = static_cast<double>(session.graph.size()) * session.cluster.size();
  double seconds = kStart;
  for (const Choice& choice : session.experiment.plan.partitioners) {
    double one = kPlain * size;
    if (choice.options.has("time_limit")) {
      const double limit = arguments.time_limit_s.value_or(choice.options.duration("time_limit").value());
      one += std::min(limit, search_seconds(choice.name, size));
    }
    seconds += one;
  }
  return seconds;
}

}  // namespace

double expected_cell_seconds(const Session& session, CellCommand command, const Arguments& arguments) {
  const double planning = planning_seconds(session, arguments);
  if (command != CellCommand::run) return planning;
  const cost::AnalyticCost cost(session.graph, session.cluster, precision_name(session.experiment));
  double iteration = 0;  // all of its work on one device
  for (OpId op = 0; op < session.graph.size(); ++op) {
    iteration += cost.op_time(op, session.experiment.data.batch, 0).total().value();
  }
  constexpr double kLaunch = 1.0;
  const auto iterations = static_cast<double>(session.experiment.train.iterations);
  return planning + kLaunch + iterations * iteration / session.cluster.size();
}

}  // namespace millrace::app
