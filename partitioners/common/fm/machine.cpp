// Deals devices to stages as plan::assign does, and prices what plan::plan_times prices.
#include "partitioners/common/fm/machine.h"

#include <algorithm>
#include <cmath>

#include "plan/assignment.h"
#include "plan/rows.h"

namespace millrace::partitioners::fm {
namespace {

constexpr double kReductionUnit = 1024;     // bytes
constexpr double kWholeInTicks = 0x1.0p50;  // sums of all figures stay exact in a double
constexpr double kSpreadWeight = 0.1;       // of the guide
// A division over a memory limit is worse than any that fits; among them the one nearest to its limits leads.
constexpr double kOverLimit = 1e3, kFurtherOver = 1e2;

}  // namespace

Times contract(const Times& fine, std::span<const Node> group_of, std::size_t groups) {
  const std::size_t profiles = fine.nodes > 0 ? fine.forward.size() / fine.nodes : 0;
  Times coarse{groups, std::vector<Ticks>(profiles * groups, 0), std::vector<Ticks>(profiles * groups, 0)};
  for (std::size_t p = 0; p < profiles; ++p) {
    for (std::size_t node = 0; node < fine.nodes; ++node) {
      const std::size_t to = p * groups + static_cast<std::size_t>(group_of[node]);
      coarse.forward[to] += fine.forward[p * fine.nodes + node];
      coarse.backward[to] += fine.backward[p * fine.nodes + node];
    }
  }
  return coarse;
}

Machine::Machine(const plan::Problem& problem, const Netlist& netlist, const plan::Shape& shape, double lambda,
                 bool recomputed)
    : problem_(problem),
      shape_(shape),
      traits_(&plan::schedule_traits(problem.schedule)),
      replicas_(plan::even_replicas(shape.devices, shape.stages)),
      stages_(static_cast<std::size_t>(shape.stages)) {
  deal_devices();
  make_links();
  make_times(netlist, recomputed);
  sample_reductions(netlist);
  double slowest = 0;  // seconds a byte
  for (int s = 0; s + 1 < stages(); ++s) {
    const Link& link = links_[static_cast<std::size_t>(s) * stages_.size() + static_cast<std::size_t>(s) + 1];
    slowest =
        std::max(slowest, link.per_byte * tick_ / static_cast<double>(std::max<std::int64_t>(1, at(s + 1).most_rows)));
  }
  per_injected_byte_ = lambda * slowest;
}

int Machine::first_device(int pipeline, int stage) const {
  int device = pipeline * shape_.devices;
  for (int s = 0; s < stage; ++s) device += replicas_[static_cast<std::size_t>(s)];
  return device;
}

std::size_t Machine::profile(int device, std::int64_t rows) {
  const auto& devices = problem_.cluster->devices();
  const auto found = std::find_if(profiles_.begin(), profiles_.end(), [&](const Profile& known) {
    return known.rows == rows &&
           devices[static_cast<std::size_t>(known.device)] == devices[static_cast<std::size_t>(device)];
  });
  if (found != profiles_.end()) return static_cast<std::size_t>(found - profiles_.begin());
  profiles_.push_back({device, rows});
  return profiles_.size() - 1;
}

void Machine::deal_devices() {
  const std::vector<double> speeds = plan::device_speeds(problem_);
  counts_memory_ = problem_.objective == plan::Objective::memory_efficiency;
  for (int p = 0; p < shape_.pipelines; ++p) {
    int first = p * shape_.devices;
    for (int s = 0; s < stages(); ++s) {
      StageDevices& stage = stages_[static_cast<std::size_t>(s)];
      const int count = replicas_[static_cast<std::size_t>(s)];
      stage.live = traits_->needed(problem_.micro_batches, stages() - s, stages());
      stage.owners = static_cast<std::int64_t>(count) * shape_.pipelines;
      const std::vector<double> own(speeds.begin() + first, speeds.begin() + first + count);
      const auto rows = largest_remainder(problem_.micro_batch_rows(shape_.pipelines), own);
      double capacity = 0;
      stage.all_rows = 0;
      for (int r = 0; r < count; ++r) {
        const std::int64_t share = rows[static_cast<std::size_t>(r)];
        const std::size_t used = profile(first + r, share);
        if (std::find(stage.profiles.begin(), stage.profiles.end(), used) == stage.profiles.end()) {
          stage.profiles.push_back(used);
        }
        capacity += own[static_cast<std::size_t>(r)];
        stage.most_rows = std::max(stage.most_rows, share);
        stage.all_rows += share;
        const auto limit = problem_.memory_of(first + r);
        counts_memory_ = counts_memory_ || limit.has_value();
        Room room{static_cast<double>(share), {}};
        if (limit) room.bytes = static_cast<double>(limit->value());
        const auto same = [&](const Room& other) { return other.rows == room.rows && other.bytes == room.bytes; };
        if (std::none_of(stage.rooms.begin(), stage.rooms.end(), same)) stage.rooms.push_back(room);
      }
      stage.capacity = p == 0 ? capacity : std::min(stage.capacity, capacity);
      first += count;
    }
  }
}

// In seconds first: make_times() finds the tick.
void Machine::make_links() {
  constexpr std::int64_t kProbe = 1 << 20;
  links_.resize(stages_.size() * stages_.size());
  for (int p = 0; p < shape_.pipelines; ++p) {
    int from_device = p * shape_.devices;
    for (int from = 0; from < stages(); ++from) {
      const int from_end = from_device + replicas_[static_cast<std::size_t>(from)];
      int to_device = from_end;
      for (int to = from + 1; to < stages(); ++to) {
        const int to_end = to_device + replicas_[static_cast<std::size_t>(to)];
        Link& link = links_[static_cast<std::size_t>(from) * stages_.size() + static_cast<std::size_t>(to)];
        for (int a = from_device; a < from_end; ++a) {
          for (int b = to_device; b < to_end; ++b) {
            const double latency = problem_.cost->transfer_time(Bytes(0), a, b).value();
            const double probe = problem_.cost->transfer_time(Bytes(kProbe), a, b).value();
            const double per_byte = (probe - latency) / static_cast<double>(kProbe);
            link.latency = std::max(link.latency, latency);
            link.per_byte = std::max(link.per_byte, per_byte * static_cast<double>(at(to).most_rows));
          }
        }
        to_device = to_end;
      }
      from_device = from_end;
    }
  }
}

void Machine::make_times(const Netlist& netlist, bool recomputed) {
  const std::size_t nodes = netlist.nodes();
  std::vector<double> forward, backward, longest(nodes, 0.0);
  for (const Profile& profile : profiles_) {
    for (std::size_t node = 0; node < nodes; ++node) {
      const cost::OpTime time = problem_.cost->op_time(static_cast<OpId>(node), profile.rows, profile.device);
      forward.push_back(time.forward.value());
      backward.push_back(time.backward().value() + (recomputed ? time.forward.value() : 0.0));
      longest[node] = std::max(longest[node], forward.back() + backward.back());
    }
  }
  double latency = 0, per_byte = 0;
  for (const Link& link : links_) {
    latency = std::max(latency, link.latency);
    per_byte = std::max(per_byte, link.per_byte);
  }
  whole_ = 0;
  for (const double time : longest) whole_ += time;
  for (std::size_t tensor = 0; tensor < netlist.nets.size(); ++tensor) {
    const double most = std::min<double>(static_cast<double>(netlist.readers[tensor].size()), stages() - 1);
    whole_ += 2 * most * (latency + per_byte * static_cast<double>(netlist.nets[tensor].bytes));
  }
  if (whole_ <= 0) whole_ = 1;
  tick_ = whole_ / kWholeInTicks;
  times_.nodes = nodes;
  for (const double time : forward) times_.forward.push_back(std::llround(time / tick_));
  for (const double time : backward) times_.backward.push_back(std::llround(time / tick_));
  for (Link& link : links_) {
    link.latency /= tick_;
    link.per_byte /= tick_;
  }
}

void Machine::sample_reductions(const Netlist& netlist) {
  double most = 0;
  for (const Holding& holding : netlist.holdings) most += static_cast<double>(holding.weights);
  for (const Holding& holding : netlist.tied) most += static_cast<double>(holding.weights);
  for (int s = 0; s < stages(); ++s) {
    std::vector<int> owners;
    for (int p = 0; p < shape_.pipelines; ++p) {
      const int first = first_device(p, s);
      for (int r = 0; r < replicas_[static_cast<std::size_t>(s)]; ++r) owners.push_back(first + r);
    }
    if (owners.size() < 2 || most == 0) continue;
    reduces_ = true;
    for (double bytes = kReductionUnit;; bytes *= 2) {
      const Seconds time = problem_.cost->all_reduce_time(Bytes(static_cast<std::int64_t>(bytes)), owners);
      stages_[static_cast<std::size_t>(s)].reduction.push_back(time.value() / tick_);
      if (bytes > most) break;
    }
  }
}

double Machine::reduction(int stage, std::int64_t bytes) const {
  const std::vector<double>& samples = at(stage).reduction;
  if (samples.empty() || bytes == 0) return 0;
  const double position = static_cast<double>(bytes) / kReductionUnit;
  if (position <= 1 || samples.size() < 2) return samples.front();
  const auto step = std::min(static_cast<std::size_t>(std::ilogb(position)), samples.size() - 2);
  const double low = std::ldexp(1.0, static_cast<int>(step));
  return samples[step] + (samples[step + 1] - samples[step]) * (position - low) / low;
}

// As plan::AnalyticBytes counts; two receives and a send of each border tensor and of its gradient.
double Machine::needed(const Room& room, const StageDevices& stage, const StageSums& sums) const {
  const auto live = static_cast<double>(stage.live);
  const double fixed = static_cast<double>(2 * sums.weights + sums.elements * problem_.sizes.optimizer_per_parameter) +
                       live * static_cast<double>(sums.kept_once);
  return fixed + room.rows * (live * static_cast<double>(sums.kept) + 3 * static_cast<double>(sums.border));
}

double Machine::memory(int stage, const StageSums& sums) const {
  double most = 0;
  for (const Room& room : at(stage).rooms) most = std::max(most, needed(room, at(stage), sums));
  return most;
}

double Machine::excess(int stage, const StageSums& sums) const {
  double most = 0;
  for (const Room& room : at(stage).rooms) {
    if (!room.bytes) continue;
    most =
        std::max(most, (needed(room, at(stage), sums) + at(stage).margin - *room.bytes) / std::max(1.0, *room.bytes));
  }
  return most;
}

// In an iteration, as the evaluator counts: activations and their gradients, and sums of gradients by a ring.
double Machine::injected(std::int64_t received, std::span<const StageSums> sums) const {
  double bytes = 2.0 * static_cast<double>(problem_.micro_batches) * shape_.pipelines * static_cast<double>(received);
  if (!reduces_) return bytes;
  for (std::size_t s = 0; s < sums.size(); ++s) {
    bytes += 2.0 * static_cast<double>(stages_[s].owners - 1) * static_cast<double>(sums[s].weights);
  }
  return bytes;
}

// A reduction starts when its stage has ended its last backward (METHODS 5, level 1).
double Machine::exposed_reduction(std::span<const plan::StageSeconds> seconds, std::span<const StageSums> sums) const {
  double exposed = 0, earlier = 0;
  for (std::size_t s = 0; s < seconds.size(); ++s) {
    exposed = std::max(exposed, reduction(static_cast<int>(s), sums[s].weights) - earlier);
    earlier += seconds[s].backward.value();
  }
  return exposed;
}

Machine::Value Machine::value(std::span<const plan::StageSeconds> seconds, std::int64_t received,
                              std::span<const StageSums> sums, double peak, double excess) const {
  double sum = 0, squares = 0, slowest = 0;
  for (const plan::StageSeconds& stage : seconds) {
    const double total = stage.total().value();
    sum += total;
    squares += total * total;
    slowest = std::max(slowest, total);
  }
  const double micro_batches = static_cast<double>(problem_.micro_batches);
  double time = traits_->iteration_time(seconds, problem_.micro_batches).value();
  if (reduces_) time += exposed_reduction(seconds, sums);
  time *= tick_;
  double spread = sum > 0 ? kSpreadWeight * micro_batches * squares / sum * tick_ : 0.0;
  const double bytes = injected(received, sums);
  Value value;
  switch (problem_.objective) {
    case plan::Objective::communication:
      // Whole bytes first; the time, as a part of one byte, breaks ties.
      value.fitness = bytes + 0.5 * time / (whole_ * micro_batches);
      break;
    case plan::Objective::memory_efficiency:
      value.fitness = (time + per_injected_byte_ * bytes) * peak;
      spread *= peak;
      break;
    case plan::Objective::bottleneck:
    case plan::Objective::max_load:
    case plan::Objective::time_per_sample:
    case plan::Objective::pipedream:
      value.fitness = slowest * tick_ + per_injected_byte_ * bytes / micro_batches;
      break;
    case plan::Objective::throughput:
    case plan::Objective::dapple:
      value.fitness = time + per_injected_byte_ * bytes;
      break;
  }
  if (excess > 0) value.fitness *= kOverLimit * (1 + kFurtherOver * excess);
  value.guide = value.fitness + spread;
  return value;
}

}  // namespace millrace::partitioners::fm
