// `millrace run`: plan on rank 0, train on all ranks, keep the results.
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/emulation.h"
#include "app/planning.h"
#include "app/run_record.h"
#include "app/session.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/launcher.h"
#include "comm/mpi/mpi_transport.h"
#include "runtime/threads.h"
#include "runtime/trainer.h"

namespace millrace::app {
namespace {

// The plan keeps the limit by its estimate; what the device compiled may be more, and the user should know.
void compare_memory(const Session& session, const runtime::Trainer& trainer, const comm::World& world) {
  if (!session.experiment.plan.memory_limit) return;
  const Bytes limit = *session.experiment.plan.memory_limit;
  const std::vector<std::string> held = world.gather(std::to_string(trainer.planned_bytes()));
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    const Bytes bytes(std::stoll(held[rank]));
    if (bytes <= limit) continue;
    log::warning(fmt::format(
        "rank {} holds {} for this plan, more than plan.memory_limit {}: the plan was chosen by an estimate", rank,
        format(bytes), format(limit)));
  }
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
  session.experiment.train.slowdown = slowdown_of(session, world.rank());
  const auto source = open_data(session, world);
  // 2. who does what
  const Chosen chosen = choose_plan(session, arguments, world);
  // 3. in which order
  comm::MpiTransport transport(world.communicator());
  const runtime::Programs programs = comm::on_all_alike([&] {
    return make_programs(session, chosen.plan, source->samples(dataset::Split::train),
                         source->samples(dataset::Split::test), transport.largest_tag());
  });
  // 4. where it is kept
  RunRecord record(session, chosen, programs, arguments, world);
  try {
    // 5. do it
    runtime::use_threads(session.threads);
    const dataset::SampleOrder order(session.experiment.seed, source->samples(dataset::Split::train),
                                     session.experiment.data.batch, session.experiment.data.tail);
    std::optional<Emulation> emulation;
    if (session.cluster.emulated()) emulation.emplace(session, programs.train.front(), transport);
    comm::Transport& network = emulation ? emulation->transport() : static_cast<comm::Transport&>(transport);
    runtime::Surroundings around{network, *source, order, stall_handler(world)};
    if (emulation) emulation->stand_in(around);
    runtime::Trainer trainer(session.graph, programs, session.experiment.train, around);
    compare_memory(session, trainer, world);
    if (emulation) record.start(*emulation);
    const runtime::Outcome outcome = trainer.run(record);
    // 6. what came of it
    record.close(outcome);
  } catch (const Error&) {
    record.fail();
    throw;
  }
  return ExitCode::done;
}

}  // namespace millrace::app
