// `millrace run`: plan on rank 0, train on all ranks, keep the results.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/emulation.h"
#include "app/kernel_variants.h"
#include "app/measured_costs.h"
#include "app/planning.h"
#include "app/run_record.h"
#include "app/run_resume.h"
#include "app/session.h"
#include "base/errors.h"
#include "base/text.h"
#include "cluster/launcher.h"
#include "comm/node/node_transport.h"
#include "runtime/forecast.h"
#include "runtime/signals.h"
#include "runtime/threads.h"
#include "runtime/trainer.h"

namespace millrace::app {
namespace {

// The plan was chosen by an estimate; what the devices say is what counts. A rank over its limit ends the run before
// the first step, not in the midst of one.
void require_memory(const Session& session, const RankReport& forecast, const comm::World& world) {
  const std::vector<std::string> held = world.gather(std::to_string(forecast.peak_bytes()));
  world.on_root_then_all([&] {
    for (int rank = 0; rank < world.size(); ++rank) {
      std::optional<Bytes> limit = session.cluster.device(rank).memory;
      if (const auto asked = session.experiment.plan.memory_limit) limit = std::min(*asked, limit.value_or(*asked));
      const Bytes bytes(std::stoll(held[static_cast<std::size_t>(rank)]));
      if (!limit || bytes <= *limit) continue;
      throw Error(ExitCode::failed,
                  fmt::format("rank {} needs {} for this plan, plan.memory_limit is {}: more stages or smaller "
                              "micro-batches need less on a rank (millrace plan shows by how much)",
                              rank, format(bytes), format(*limit)));
    }
    return std::string();
  });
}

// How many times longer the kernels of `rank` take. A real one can only be made to wait.
double slowdown_of(const Session& session, int rank) {
  const auto& slowdown = session.experiment.slowdown;
  for (const auto& [slow, factor] : slowdown) {
    if (factor >= 1 || session.cluster.emulated()) continue;
    throw comm::SharedError(ExitCode::usage,
                            fmt::format("{}: found {}, allowed: 1 or more, since a real rank cannot be made faster",
                                        cited(session.experiment, fmt::format("slowdown.{}", slow)), factor));
  }
  const auto found = slowdown.find(rank);
  return found == slowdown.end() ? 1.0 : found->second;
}

}  // namespace

ExitCode run(const Arguments& arguments, comm::World& world) {
  world.on_root_then_all([&] {
    cluster::check_world_size(world.size(), cluster::process_environment());
    return std::string();
  });
  // 1. what to do
  Session session = open_session(arguments, world, world.size());
  if (session.experiment.train.any_grid) session.threads = 1;
  session.experiment.train.slowdown = slowdown_of(session, world.rank());
  const auto source = open_data(session, world);
  const auto checkpoint = find_checkpoint(session, *source, arguments, world);
  if (nothing_left(session, arguments, world, checkpoint)) return ExitCode::done;
  // 2. who does what
  const Chosen chosen = plan_to_resume(session, arguments, world, checkpoint);
  // 3. in which order
  // Modelled messages have modelled times: what carries them shall cost the kernels nothing.
  comm::NodeTransport transport(world.communicator(), {.shares_memory = !session.cluster.emulated()});
  const runtime::Programs programs = comm::on_all_alike([&] {
    return make_programs(session, chosen.plan, source->samples(dataset::Split::train),
                         source->samples(dataset::Split::test), transport.largest_tag());
  });
  measure_as_cut(session, programs.train.front(), world);
  // 4. where it is kept
  const runtime::TrainingCounters begun = checkpoint ? checkpoint->manifest.counters : runtime::TrainingCounters{};
  RunRecord record(session, chosen, programs, arguments, world, begun);
  try {
    if (world.root() && !arguments.resume) storage::StepFolders(checkpoint_root(session.experiment)).keep(0);
    // 5. do it
    runtime::use_threads(session.threads);
    const dataset::SampleOrder order(session.experiment.seed, source->samples(dataset::Split::train),
                                     session.experiment.data.batch, session.experiment.data.tail);
    std::optional<Emulation> emulation;
    if (session.cluster.emulated()) emulation.emplace(session, programs.train.front(), transport);
    comm::Transport& network = emulation ? emulation->transport() : static_cast<comm::Transport&>(transport);
    runtime::Checkpoints checkpoints(checkpoint_settings(session, *source, chosen), network);
    runtime::SignalWatch signals;
    runtime::Surroundings around{network,      *source, order, stall_handler(world, [&record] { record.fail(); }),
                                 &checkpoints, &signals};
    if (emulation) emulation->stand_in(around);
    if (emulation) around.checkpoints = nullptr;  // there is nothing to keep
    agree_on_variants(session, programs, world);
    const RankReport forecast =
        runtime::forecast(session.graph, programs, session.experiment.train, world.rank(), around.device).rank;
    require_memory(session, forecast, world);
    record.expect(forecast);
    runtime::Trainer trainer(session.graph, programs, session.experiment.train, around);
    if (checkpoint) trainer.resume(*checkpoint);
    if (emulation) record.start(*emulation);
    world.now("trains");
    const runtime::Outcome outcome = [&] {
      const comm::World::WatchedElsewhere watched(world);
      return trainer.run(record);
    }();
    world.now("collects its results");
    // 6. what came of it
    record.close(outcome);
    if (outcome.signal != 0) return static_cast<ExitCode>(128 + outcome.signal);  // as shells name it
  } catch (const Error&) {
    record.fail();
    throw;
  }
  return ExitCode::done;
}

}  // namespace millrace::app
