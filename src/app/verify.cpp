// `millrace verify`: a few iterations under the plan and on one rank; loss, gradient norm and parameters must agree.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/kernel_variants.h"
#include "app/planning.h"
#include "app/print.h"
#include "app/run_record.h"
#include "app/session.h"
#include "cluster/launcher.h"
#include "comm/node/node_transport.h"
#include "plan/one_rank.h"
#include "runtime/threads.h"
#include "runtime/trainer.h"
#include "schedules/registry.h"

namespace millrace::app {
namespace {

constexpr double kTolerance = 1e-5;
// A sum in another order may round to the next number of eight bits.
constexpr double kBf16Tolerance = 1e-3;
// What a ReLU on the other side may do to the first iteration. More than that is no rounding.
constexpr double kRoundingLimit = 1e-3;
constexpr double kBf16RoundingLimit = 1e-2;

double tolerance_in(kernels::Precision precision) {
  return precision == kernels::Precision::bf16 ? kBf16Tolerance : kTolerance;
}

// 0: nothing beyond the tolerance is rounding.
double rounding_limit_in(kernels::Precision precision) {
  if (precision == kernels::Precision::fp64) return 0;
  return precision == kernels::Precision::bf16 ? kBf16RoundingLimit : kRoundingLimit;
}

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
  comm::NodeTransport transport(communicator);
  const std::int64_t samples = source.samples(dataset::Split::train);
  const runtime::Programs programs =
      comm::on_all_alike([&] { return make_programs(session, plan, samples, 0, transport.largest_tag()); });
  if (transport.size() > 1) agree_on_variants(session, programs, world);
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

double largest_difference(const Trial& a, const Trial& b, double IterationRow::*field, std::size_t rows) {
  double worst = 0;
  for (std::size_t i = 0; i < std::min(rows, a.rows.size()); ++i)
    worst = std::max(worst, relative(a.rows[i].*field, b.rows[i].*field));
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

struct Differences {
  double loss = 0;
  double gradient_norm = 0;
  double parameters = 0;
  double first_iteration = 0;  ///< of loss and gradient norm, before differences can grow
  double tolerance = kTolerance;

  double largest() const { return std::max({loss, gradient_norm, parameters}); }
  bool equal() const { return largest() <= tolerance; }
};

// Two effects are larger than rounding by nature: Adam turns gradients that are pure noise into full steps, and a ReLU
// whose input is zero within rounding may take the other side. In double both are far below the tolerance.
// Parts of tensor-parallel stages depend on the precision: what one rank knows of them is forgotten on all.
void use_double(Session& session) {
  session.experiment.train.kernels = "reference";
  session.experiment.train.precision = kernels::Precision::fp64;
  session.split.reset();
}

// Trains under the plan on all ranks, then on rank 0 alone; every rank learns what came of it.
Differences compare(const Session& session, const Plan& plan, const Plan& single, const dataset::Source& source,
                    const comm::World& world) {
  const Trial split = train(session, plan, source, world, world.communicator());
  const std::string text = world.on_root_then_all([&] {
    const Trial alone = train(session, single, source, world, MPI_COMM_SELF);
    const std::size_t all = split.rows.size();
    return nlohmann::json{largest_difference(split, alone, &IterationRow::loss, all),
                          largest_difference(split, alone, &IterationRow::gradient_norm, all),
                          parameter_difference(split, alone),
                          std::max(largest_difference(split, alone, &IterationRow::loss, 1),
                                   largest_difference(split, alone, &IterationRow::gradient_norm, 1))}
        .dump();
  });
  const auto values = nlohmann::json::parse(text);
  const auto number = [&](std::size_t i) { return values[i].is_number() ? values[i].get<double>() : HUGE_VAL; };
  return {number(0), number(1), number(2), number(3), tolerance_in(session.experiment.train.precision)};
}

// Why a plan is not meant to give the gradients of one rank; empty: it is.
std::string why_different(const Plan& plan) {
  const schedules::Entry& schedule = schedules::by_name(plan.schedule);
  if ((schedule.capabilities & schedules::kSynchronous) != 0) return "";
  return fmt::format(
      "schedule {} is asynchronous: it computes gradients with weights of earlier updates, which one rank does not; "
      "synchronous schedules (docs/schedules.md) are equal to it",
      plan.schedule);
}

void print_differences(const Differences& found, const std::string& method, const std::string& why,
                       const Arguments& arguments, int ranks) {
  if (arguments.format == Format::json) {
    print(nlohmann::json{{"iterations", arguments.iterations},
                         {"ranks", ranks},
                         {"precision", method.substr(0, 4)},
                         {"tolerance", found.tolerance},
                         {"loss", found.loss},
                         {"gradient_norm", found.gradient_norm},
                         {"parameters", found.parameters},
                         {"equal", found.equal()},
                         {"why_different", found.equal() ? "" : why}});
    return;
  }
  const auto row = [&](const char* what, double value) {
    return std::vector<std::string>{what, fmt::format("{:.2e}", value), fmt::format("{:.0e}", found.tolerance)};
  };
  print(table_text(
      {{"relative difference to one rank", "largest", "allowed"},
       {row("loss", found.loss), row("gradient norm", found.gradient_norm), row("parameters", found.parameters)}}));
  print(fmt::format("{} iterations on {} ranks in {}: {}\n", arguments.iterations, ranks, method,
                    found.equal() ? "equal" : "DIFFERENT"));
  if (!found.equal() && !why.empty()) print(why + "\n");
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
  const Chosen chosen = choose_plan(session, arguments, world);
  const Plan single = comm::on_all_alike(
      [&] { return plan::one_rank_plan(chosen.plan, session.graph, session.experiment.data.batch); });
  runtime::use_threads(session.threads);
  if (session.experiment.train.optimizer.kind != runtime::OptimizerKind::sgd) use_double(session);
  Differences found = compare(session, chosen.plan, single, *source, world);
  std::string method = precision_name(session.experiment);
  if (!found.equal() && found.first_iteration <= rounding_limit_in(session.experiment.train.precision)) {
    use_double(session);
    method = fmt::format("fp64 ({} differs by up to {:.1e})", method, found.largest());
    found = compare(session, chosen.plan, single, *source, world);
  }
  if (world.root()) print_differences(found, method, why_different(chosen.plan), arguments, world.size());
  return found.equal() ? ExitCode::done : ExitCode::verification;
}

}  // namespace millrace::app
