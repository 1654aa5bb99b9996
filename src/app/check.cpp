// `millrace check`: everything that can be known without running.
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/planning.h"
#include "app/print.h"
#include "app/session.h"
#include "base/count.h"
#include "base/text.h"
#include "dataset/order.h"

namespace millrace::app {
namespace {

// Samples that no batch of an epoch has.
std::string dropped(const Session& session, std::int64_t samples) {
  const DataSection& data = session.experiment.data;
  const std::int64_t count =
      dataset::SampleOrder(session.experiment.seed, samples, data.batch, data.tail).dropped_per_epoch();
  return count > 0 ? fmt::format("; each epoch leaves out {} of the former (data.tail: drop)", count) : "";
}

}  // namespace

ExitCode check(const Arguments& arguments, comm::World& world) {
  const int ranks = world.size() > 1 ? world.size() : arguments.ranks.value_or(1);
  Session session = open_session(arguments, world, ranks);
  const std::string why_not_trained = why_not_trainable(session.graph);
  const auto source = why_not_trained.empty() ? open_data(session, world) : nullptr;
  const std::int64_t train = source ? source->samples(dataset::Split::train) : session.experiment.data.batch;
  const std::int64_t test = source ? source->samples(dataset::Split::test) : 0;
  const Chosen chosen = choose_plan(session, arguments, world);
  constexpr std::int64_t kPromisedTag = 32767;  // what every MPI allows
  const runtime::Programs programs =
      comm::on_all_alike([&] { return make_programs(session, chosen.plan, train, test, kPromisedTag); });
  if (!world.root()) return ExitCode::done;
  const plan::PlanReport& report = *chosen.report;
  if (arguments.format == Format::json) {
    print(
        nlohmann::json{{"problem", problem_json(session.graph, session.cluster.size(), session.experiment.data.batch)},
                       {"plans", {plan_json(report, session.graph)}},
                       {"config", session.experiment.effective}});
    return ExitCode::done;
  }
  if (arguments.verbose) {
    print(session.experiment.effective + "\n");
    if (!arguments.explain) print_inputs(session);  // they are part of the explanation
  }
  std::size_t instructions = 0;
  for (const RankProgram& rank : programs.train.front().ranks) instructions += rank.instructions.size();
  print(fmt::format("model     {}: {}, {}\n", session.experiment.model.name, counted(session.graph.size(), "operator"),
                    counted(session.graph.parameter_count(), "parameter")));
  print(source ? fmt::format("data      {} training and {} test samples{}\n", train, test, dropped(session, train))
               : fmt::format("data      none: planned and simulated only, since {}\n", why_not_trained));
  print(fmt::format("plan      {}, {}, {}, by {}\n", counted(report.pipelines, "pipeline"),
                    counted(report.micro_batches, "micro-batch"), report.schedule, report.partitioner));
  print(fmt::format("memory    {} on the fullest rank\n", format(Bytes(report.peak_memory_bytes))));
  const auto whole = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  print(fmt::format("program   {}, {}, {}: verified\n", counted(whole(instructions), "instruction"),
                    counted(whole(programs.train.front().transfers.size()), "message"),
                    counted(whole(programs.train.front().buckets.size()), "bucket")));
  if (arguments.explain) print_explanation(session, report);
  print(fmt::format("threads   {} for each rank\n", session.threads));
  return ExitCode::done;
}

}  // namespace millrace::app
