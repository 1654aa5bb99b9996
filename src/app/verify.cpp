// `millrace verify`: a few iterations under the plan and on one rank; loss, gradient norm and parameters must agree.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/planning.h"
#include "app/print.h"
#include "app/run_record.h"
#include "app/session.h"
#include "cluster/launcher.h"
#include "comm/mpi/mpi_transport.h"
#include "plan/one_rank.h"
#include "runtime/threads.h"
#include "runtime/trainer.h"

namespace millrace::app {
namespace {

constexpr double kTolerance = 1e-5;

struct Trial {
  std::vector<IterationRow> rows;
  std::vector<std::vector<double>> values;
};

class Rows final : public runtime::RunObserver {
 public:
  explicit Rows(Trial& trial) : trial_(trial) {}
  void iteration(const IterationRow& row) override { trial_.rows.push_back(row); }
  void evaluation(const EvaluationRow&) override {}

 private:
  Trial& trial_;
};

Trial train(const Session& session, const Plan& plan, const dataset::Source& source, const comm::World& world,
            MPI_Comm communicator) {
  comm::MpiTransport transport(communicator);
  const std::int64_t samples = source.samples(dataset::Split::train);
  const runtime::Programs programs =
      comm::on_all_alike([&] { return make_programs(session, plan, samples, 0, transport.largest_tag()); });
  const DataSection& data = session.experiment.data;
  const dataset::SampleOrder order(session.experiment.seed, samples, data.batch, data.tail);
  runtime::Trainer trainer(session.graph, programs, session.experiment.train,
                           {transport, source, order, stall_handler(world)});
  Trial trial;
  Rows rows(trial);
  trainer.run(rows);
  trial.values = trainer.gather_values();
  return trial;
}

double relative(double a, double b) { return b == 0 ? std::abs(a) : std::abs(a - b) / std::abs(b); }

double largest_difference(const Trial& a, const Trial& b, double IterationRow::*field) {
  double worst = 0;
  for (std::size_t i = 0; i < a.rows.size(); ++i) worst = std::max(worst, relative(a.rows[i].*field, b.rows[i].*field));
  return worst;
}

double parameter_difference(const Trial& a, const Trial& b) {
  double difference = 0, size = 0;
  for (std::size_t t = 0; t < a.values.size(); ++t) {
    for (std::size_t i = 0; i < a.values[t].size(); ++i) {
      difference += std::pow(a.values[t][i] - b.values[t][i], 2);
      size += b.values[t][i] * b.values[t][i];
    }
  }
  return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

// Adam divides by the root of the second moment, so gradients that are pure rounding noise become full steps: such
// runs are compared in double, where the noise is far below the tolerance.
void choose_numerics(Experiment& experiment) {
  if (experiment.train.optimizer.kind == runtime::OptimizerKind::sgd) return;
  experiment.train.kernels = "reference";
  experiment.train.precision = kernels::Precision::fp64;
}

}  // namespace

ExitCode verify(const Arguments& arguments, comm::World& world) {
  world.on_root_then_all([&] {
    cluster::check_world_size(world.size(), cluster::process_environment());
    return std::string();
  });
  Session session = open_session(arguments, world, world.size());
  const auto source = open_data(session, world);
  session.experiment.train.iterations = arguments.iterations;
  choose_numerics(session.experiment);
  const Chosen chosen = choose_plan(session, arguments, world);
  const Plan single_plan = comm::on_all_alike(
      [&] { return plan::one_rank_plan(chosen.plan, session.graph, session.experiment.data.batch); });
  runtime::use_threads(session.threads);
  const Trial split = train(session, chosen.plan, *source, world, world.communicator());
  const std::string verdict = world.on_root_then_all([&] {
    const Trial single = train(session, single_plan, *source, world, MPI_COMM_SELF);
    const double loss = largest_difference(split, single, &IterationRow::loss);
    const double norm = largest_difference(split, single, &IterationRow::gradient_norm);
    const double parameters = parameter_difference(split, single);
    const bool equal = loss <= kTolerance && norm <= kTolerance && parameters <= kTolerance;
    if (arguments.format == Format::json) {
      print(nlohmann::json{{"iterations", arguments.iterations},
                           {"ranks", world.size()},
                           {"tolerance", kTolerance},
                           {"loss", loss},
                           {"gradient_norm", norm},
                           {"parameters", parameters},
                           {"equal", equal}});
    } else {
      print(table_text({{"relative difference to one rank", "largest", "allowed"},
                        {{"loss", fmt::format("{:.2e}", loss), fmt::format("{:.0e}", kTolerance)},
                         {"gradient norm", fmt::format("{:.2e}", norm), fmt::format("{:.0e}", kTolerance)},
                         {"parameters", fmt::format("{:.2e}", parameters), fmt::format("{:.0e}", kTolerance)}}}));
      print(fmt::format("{} iterations on {} ranks: {}\n", arguments.iterations, world.size(),
                        equal ? "equal" : "DIFFERENT"));
    }
    return std::string(equal ? "equal" : "");
  });
  return verdict.empty() ? ExitCode::verification : ExitCode::done;
}

}  // namespace millrace::app
