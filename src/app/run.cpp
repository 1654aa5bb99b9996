// `millrace run`: plan on rank 0, train on all ranks, keep the results.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/planning.h"
#include "app/run_record.h"
#include "app/run_resume.h"
#include "app/session.h"
#include "base/errors.h"
#include "base/text.h"
#include "cluster/launcher.h"
#include "comm/mpi/mpi_transport.h"
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

}  // namespace

ExitCode run(const Arguments& arguments, comm::World& world) {
  world.on_root_then_all([&] {
    cluster::check_world_size(world.size(), cluster::process_environment());
    return std::string();
  });
  // 1. what to do
  Session session = open_session(arguments, world, world.size());
  if (session.experiment.train.any_grid) session.threads = 1;
  const auto source = open_data(session, world);
  const auto checkpoint = find_checkpoint(session, *source, arguments, world);
  // 2. who does what
  const Chosen chosen = plan_to_resume(session, arguments, world, checkpoint);
  // 3. in which order
  comm::MpiTransport transport(world.communicator());
  const runtime::Programs programs = comm::on_all_alike([&] {
    return make_programs(session, chosen.plan, source->samples(dataset::Split::train),
                         source->samples(dataset::Split::test), transport.largest_tag());
  });
  // 4. where it is kept
  const runtime::TrainingCounters begun = checkpoint ? checkpoint->manifest.counters : runtime::TrainingCounters{};
  RunRecord record(session, chosen, programs, arguments, world, begun);
  try {
    if (world.root() && !arguments.resume) storage::StepFolders(checkpoint_root(session.experiment)).keep(0);
    // 5. do it
    runtime::use_threads(session.threads);
    const dataset::SampleOrder order(session.experiment.seed, source->samples(dataset::Split::train),
                                     session.experiment.data.batch, session.experiment.data.tail);
    runtime::Checkpoints checkpoints(checkpoint_settings(session, *source, chosen.plan), transport);
    runtime::SignalWatch signals;
    const RankReport forecast = runtime::forecast(session.graph, programs, session.experiment.train, transport);
    require_memory(session, forecast, world);
    record.expect(forecast);
    runtime::Trainer trainer(session.graph, programs, session.experiment.train,
                             {transport, *source, order, stall_handler(world), &checkpoints, &signals});
    if (checkpoint) trainer.resume(*checkpoint);
    const runtime::Outcome outcome = trainer.run(record);
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
