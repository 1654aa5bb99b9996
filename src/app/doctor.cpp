// `millrace doctor`: what has to hold before a run can work, each with a hint where it does not.
#include <cstring>
#include <functional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/print.h"
#include "app/run_record.h"
#include "app/version.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/launcher.h"
#include "comm/mpi/mpi_transport.h"
#include "runtime/watchdog.h"
#include "storage/library.h"

namespace millrace::app {
namespace {

struct Finding {
  std::string check;
  std::string found;
  std::string hint;  ///< empty: as it should be
  bool fatal = false;
};

constexpr std::int64_t kLargeMessage = std::int64_t{32} << 20;
constexpr std::int64_t kUsefulTags = 32767;

Finding world_size(const comm::World& world) {
  const auto launcher = cluster::launcher_size(cluster::process_environment());
  if (!launcher) return {"launcher", "none: one process", "", false};
  const std::string found = fmt::format("{} = {}, MPI sees {}", launcher->variable, launcher->size, world.size());
  if (launcher->size == world.size()) return {"launcher", found, "", false};
  return {"launcher", found, "start with srun --mpi=pmix, or with the mpirun of the MPI that millrace was built with",
          true};
}

Finding tag_limit(const comm::Transport& transport) {
  const std::string found = fmt::format("tags up to {}", transport.largest_tag());
  return {"tag limit", found, transport.largest_tag() < kUsefulTags ? "the MPI standard promises 32767" : "",
          transport.largest_tag() < kUsefulTags};
}

Finding affinity(const comm::World& world) {
  const auto cores = cluster::affinity_cores().size();
  const int threads = cluster::threads_of_rank(cluster::process_environment(), cores, world.size());
  const std::string found = fmt::format("{} cores in the mask, {} threads", cores, threads);
  if (static_cast<std::size_t>(threads) <= cores) return {"affinity", found, "", false};
  return {"affinity", found,
          fmt::format("OMP_NUM_THREADS {} exceeds the {} cores that the rank may use: lower it, or start "
                      "mpirun with --bind-to none",
                      threads, cores),
          false};
}

Finding oversubscription(const comm::World& world) {
  const auto cores = static_cast<int>(cluster::affinity_cores().size());
  const std::string found = fmt::format("{} ranks, {} cores in the mask of rank 0", world.size(), cores);
  if (world.size() <= cores) return {"oversubscription", found, "", false};
  const bool yields = cluster::process_environment()("OMPI_MCA_mpi_yield_when_idle").value_or("0") == "1";
  return {"oversubscription", found,
          std::string("timings of this job mean little") +
              (yields ? "" : "; set OMPI_MCA_mpi_yield_when_idle=1, or waiting ranks take the cores of working ones"),
          false};
}

Finding hdf5() {
  const auto [library, headers] = storage::hdf5_version();
  const std::string found = fmt::format("library {}, headers {}", library, headers);
  return {"HDF5", found, library == headers ? "" : "two HDF5 libraries are mixed: look at ldd of the binary",
          library != headers};
}

// Neighbours exchange one large message in a ring and compare it; then one sum over all.
Finding large_message(comm::MpiTransport& transport, runtime::Watchdog& watchdog) {
  const int next = (transport.rank() + 1) % transport.size();
  const int previous = (transport.rank() + transport.size() - 1) % transport.size();
  std::vector<std::byte> out(kLargeMessage, static_cast<std::byte>(transport.rank() + 1)), in(kLargeMessage);
  watchdog.operation(0);
  const comm::Ticket sent = transport.send(out, next, 1);
  transport.wait(transport.receive(in, previous, 1), &watchdog);
  transport.wait(sent, &watchdog);
  const std::vector<std::byte> expected(kLargeMessage, static_cast<std::byte>(previous + 1));
  double wrong = in == expected ? 0 : 1;
  watchdog.operation(1);
  std::vector<int> all;
  for (int r = 0; r < transport.size(); ++r) all.push_back(r);
  if (transport.size() > 1) {
    transport.wait(transport.all_reduce(transport.group(all), &wrong, 1, comm::Element::float64), &watchdog);
  }
  const std::string found = fmt::format("{} to a neighbour, {} wrong", format(Bytes(kLargeMessage)), wrong);
  return {"large message", found, wrong > 0 ? "set OMPI_MCA_btl_vader_single_copy_mechanism=none" : "", wrong > 0};
}

void print_findings(const std::vector<Finding>& findings, const Arguments& arguments) {
  if (arguments.format == Format::json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Finding& f : findings)
      all.push_back({{"check", f.check}, {"found", f.found}, {"hint", f.hint}, {"ok", f.hint.empty()}});
    print(all);
    return;
  }
  print(version_text() + "\n\n");
  planner::Table table{{"check", "found", "verdict"}, {}};
  for (const Finding& f : findings)
    table.rows.push_back({f.check, f.found, f.hint.empty() ? "ok" : (f.fatal ? "PROBLEM: " : "note: ") + f.hint});
  print(table_text(table));
}

}  // namespace

ExitCode doctor(const Arguments& arguments, comm::World& world) {
  static constexpr const char* kPhases[]{"the large message between neighbours", "the sum over all ranks"};
  runtime::Watchdog watchdog(Seconds(arguments.timeout_s), [&](std::int64_t code, Seconds waited) {
    stall_handler(world)(
        fmt::format("rank {}: waited {} in {}", world.rank(), format(waited), kPhases[code == 1 ? 1 : 0]));
  });
  comm::MpiTransport transport(world.communicator());
  std::vector<Finding> findings{world_size(world),       {"thread level", "MPI_THREAD_MULTIPLE", "", false},
                                tag_limit(transport),    affinity(world),
                                oversubscription(world), hdf5()};
  findings.push_back(large_message(transport, watchdog));
  if (world.root()) print_findings(findings, arguments);
  for (const Finding& finding : findings) {
    if (finding.fatal) return ExitCode::failed;
  }
  return ExitCode::done;
}

}  // namespace millrace::app
