// Ranks compute side by side, then talk pair by pair.
#include "app/job_speed.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cluster/local.h"
#include "comm/node/node_transport.h"
#include "probe/device_speed.h"
#include "probe/link_speed.h"
#include "runtime/threads.h"
#include "runtime/trainer.h"

namespace millrace::app {
namespace {

// A rank's speed is that of its best slice: another process may take its core for longer than a slice, not for all.
constexpr int kSlices = 5;
constexpr Seconds kTimeOfSlice{0.01};
constexpr std::chrono::milliseconds kBetweenSlices{20};
constexpr double kSameSpeed = 0.1;  // ranks that differ by less are alike

std::vector<double> gather_reals(const comm::World& world, double own) {
  std::vector<double> all;
  for (const std::string& text : world.gather_to_all(nlohmann::json(own).dump())) {
    all.push_back(nlohmann::json::parse(text).get<double>());
  }
  return all;
}

// The slowest of the links between pairs of ranks, each measured while the others wait; on all ranks.
std::optional<cluster::Link> slowest_link(const std::vector<std::pair<int, int>>& pairs, comm::Transport& transport,
                                          const comm::World& world) {
  std::optional<cluster::Link> slowest;
  for (const auto& [a, b] : pairs) {
    cluster::Link link;
    if (world.rank() == a || world.rank() == b) link = probe::measure_link(transport, a, b);
    const auto of_a = static_cast<std::size_t>(a);
    link.latency = Seconds(gather_reals(world, link.latency.value())[of_a]);
    link.bandwidth = BytesPerSecond(gather_reals(world, link.bandwidth.value())[of_a]);
    if (!slowest || link.bandwidth < slowest->bandwidth) slowest = link;
  }
  return slowest;
}

}  // namespace

int threads_of(const Session& session) { return session.experiment.train.any_grid ? 1 : session.threads; }

std::unique_ptr<kernels::Device> device_for_measuring(const Session& session) {
  runtime::use_threads(threads_of(session));
  return runtime::make_device(session.experiment.train);
}

cost::MeasuredJob measure_job(const Session& session, const comm::World& world) {
  cost::MeasuredJob job;
  const auto device = device_for_measuring(session);
  std::vector<double> slices;
  for (int slice = 0; slice < kSlices; ++slice) {
    if (slice > 0) std::this_thread::sleep_for(kBetweenSlices);
    world.barrier();
    const kernels::Precision precision = session.experiment.train.precision;
    slices.push_back(probe::measure_dense_network(*device, precision, kTimeOfSlice).value());
  }
  const std::vector<double> seconds = gather_reals(world, *std::min_element(slices.begin(), slices.end()));
  for (const double own : seconds) job.speeds.push_back(seconds.front() / own);
  job.speeds = cluster::with_equal_speeds(job.speeds, kSameSpeed);

  const cluster::Cluster& cluster = session.cluster;
  std::vector<std::pair<int, int>> within, between;  // the first two ranks of each host; the first ones of two hosts
  for (int node = 0; node < static_cast<int>(cluster.nodes().size()); ++node) {
    std::vector<int> ranks;
    for (int rank = 0; rank < cluster.size(); ++rank) {
      if (cluster.node_of(rank) == node) ranks.push_back(rank);
    }
    if (ranks.size() > 1) within.emplace_back(ranks[0], ranks[1]);
    if (node > 0) between.emplace_back(0, ranks.front());
  }
  comm::NodeTransport transport(world.communicator());
  job.within = slowest_link(within, transport, world);
  job.between = slowest_link(between, transport, world);
  job.reduced = {4_KiB, 64_KiB, 1_MiB, 4_MiB};
  for (const Seconds time : probe::measure_all_reduce(transport, job.reduced)) {
    const std::vector<double> times = gather_reals(world, time.value());
    job.reductions.emplace_back(*std::max_element(times.begin(), times.end()));
  }
  return job;
}

}  // namespace millrace::app
