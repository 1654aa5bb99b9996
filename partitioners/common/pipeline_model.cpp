// Makes the sums of each kind of device and number of rows, and the links and limits of each group of devices.
#include "partitioners/common/pipeline_model.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "plan/rows.h"

namespace millrace::partitioners {
namespace {

constexpr std::int64_t kAnyNumber = std::int64_t{1} << 40;

// Asked for each place that a stage may begin at: the library's functions for any number take their time.
double power_of_four(std::size_t exponent) { return static_cast<double>(std::uint64_t{1} << (2 * exponent)); }

// \pre number ≥ 1.
std::size_t log_of_four(double number) {
  constexpr std::uint64_t kBias = 1023;
  return static_cast<std::size_t>((std::bit_cast<std::uint64_t>(number) >> 52U) - kBias) / 2;
}

}  // namespace

PipelineModel::PipelineModel(const plan::Problem& problem, const Segments& segments, const DeviceDeal& deal,
                             OpTimes& times, TimeSums& sums, std::span<const double> speeds, CutRules rules)
    : problem_(&problem),
      segments_(&segments),
      deal_(&deal),
      times_(&times),
      sums_(&sums),
      speeds_(speeds),
      rules_(rules),
      traits_(&plan::schedule_traits(problem.schedule)),
      items_(segments.items()),
      devices_(problem.devices_per_pipeline(deal.pipelines())),
      rows_(problem.micro_batch_rows(deal.pipelines())) {
  constexpr std::size_t kFewItems = 32;
  exact_reductions_ = items_ <= kFewItems;
  memory_limited_ = rules_.cap < INFINITY;
  for (int device = 0; rules_.limited && device < problem.cluster->size() && !memory_limited_; ++device) {
    memory_limited_ = problem.memory_of(device).has_value();
  }
  bound_work();
}

// Devices of different make may each be best at some operators. Time per row does not grow with rows, so the whole
// micro-batch on one device is the least work.
void PipelineModel::bound_work() {
  constexpr std::size_t kMostKinds = 8;
  const cluster::Cluster& cluster = *problem_->cluster;
  std::vector<int> kinds;
  for (int device = 0; device < cluster.size(); ++device) kinds.push_back(cluster.first_alike(device));
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  // With more kinds they are taken to differ in speed alone, as measured ranks of one job do.
  const bool by_speed = kinds.size() > kMostKinds;
  if (by_speed) kinds = {static_cast<int>(std::max_element(speeds_.begin(), speeds_.end()) - speeds_.begin())};
  std::vector<OpTimes::Scaled> columns;
  for (const int kind : kinds) columns.push_back(times_->of(kind, rows_));
  std::vector<double> strength;
  std::tie(least_work_, strength) = sums_->least(columns);
  for (std::size_t q = 0; q < deal_->queues(); ++q) {
    double most = 0;
    for (int j = 0; j < deal_->count(q); ++j) {
      for (int p = 0; p < deal_->pipelines(); ++p) {
        const int device = deal_->device(p, q, j);
        const auto kind = std::lower_bound(kinds.begin(), kinds.end(), cluster.first_alike(device)) - kinds.begin();
        most = std::max(
            most, by_speed ? speeds_[static_cast<std::size_t>(device)] : strength[static_cast<std::size_t>(kind)]);
      }
    }
    strength_.push_back(most);
  }
}

PipelineModel::Profile PipelineModel::profile(int device, std::int64_t rows) {
  const OpTimes::Scaled times = times_->of(problem_->cluster->first_alike(device), rows);
  return {&sums_->of(*times.column), times.scale};
}

// What a group's figures depend on: kinds and nodes of its devices, and where the stage before ends.
std::vector<int> PipelineModel::signature(const Counts& behind, const Counts& taken) const {
  const cluster::Cluster& cluster = *problem_->cluster;
  std::vector<int> text;
  std::vector<int> nodes;  // in order of their first device
  const auto node = [&](int device) {
    const int at = cluster.node_of(device);
    const auto found = std::find(nodes.rbegin(), nodes.rend(), at);
    if (found != nodes.rend()) return static_cast<int>(nodes.rend() - found) - 1;
    nodes.push_back(at);
    // Nodes with other links are told apart.
    const auto same = [&](const cluster::Node& other) {
      return other.link == cluster.nodes()[static_cast<std::size_t>(at)].link;
    };
    const auto first = std::find_if(cluster.nodes().begin(), cluster.nodes().end(), same);
    text.push_back(-1 - static_cast<int>(first - cluster.nodes().begin()));
    return static_cast<int>(nodes.size()) - 1;
  };
  for (int p = 0; p < deal_->pipelines(); ++p) {
    for (const int device : deal_->devices(p, behind, taken)) {
      const int at = node(device);  // may add a mark of its own first
      text.push_back(cluster.first_alike(device));
      text.push_back(at);
    }
  }
  constexpr int kBefore = std::numeric_limits<int>::max();
  text.push_back(kBefore);
  for (std::size_t q = 0; q < deal_->queues(); ++q) {
    const int before = deal_->count(q) - behind[q] - taken[q] - 1;
    text.push_back(before < 0 ? kBefore : node(deal_->device(0, q, before)));
  }
  return text;
}

int PipelineModel::group(const Counts& behind, const Counts& taken) {
  const auto [found, fresh] = group_numbers_.try_emplace(signature(behind, taken), static_cast<int>(groups_.size()));
  if (fresh) groups_.push_back(make_group(behind, taken));
  return found->second;
}

PipelineModel::Group PipelineModel::make_group(const Counts& behind, const Counts& taken) {
  Group group;
  for (int p = 0; p < deal_->pipelines(); ++p) {
    const std::vector<int> devices = deal_->devices(p, behind, taken);
    std::vector<double> shares;
    for (const int device : devices) shares.push_back(speeds_[static_cast<std::size_t>(device)]);
    const std::vector<std::int64_t> rows = largest_remainder(rows_, shares);
    for (std::size_t r = 0; r < devices.size(); ++r) {
      const Profile used = profile(devices[r], rows[r]);
      if (std::find(group.profiles.begin(), group.profiles.end(), used) == group.profiles.end()) {
        group.profiles.push_back(used);
      }
      const auto count = static_cast<double>(rows[r]);
      group.most_rows = std::max(group.most_rows, count);
      group.owners.push_back(devices[r]);
      if (!memory_limited_) continue;
      const auto limit = rules_.limited ? problem_->memory_of(devices[r]) : std::nullopt;
      const Room room{count, limit ? static_cast<double>(limit->value()) : INFINITY};
      if (std::find(group.rooms.begin(), group.rooms.end(), room) == group.rooms.end()) group.rooms.push_back(room);
    }
  }
  // Of profiles of one column, the largest scale is the slowest everywhere.
  std::vector<Profile> slowest;
  for (const Profile& profile : group.profiles) {
    const auto same =
        std::find_if(slowest.begin(), slowest.end(), [&](const Profile& other) { return other.sums == profile.sums; });
    if (same == slowest.end()) {
      slowest.push_back(profile);
    } else {
      same->scale = std::max(same->scale, profile.scale);
    }
  }
  group.profiles = std::move(slowest);
  link(group, behind, taken);
  return group;
}

// From the device just before the stage's in each queue, to the farthest of the stage's; the fastest over queues.
void PipelineModel::link(Group& group, const Counts& behind, const Counts& taken) const {
  constexpr std::int64_t kProbe = 1 << 20;
  double best = INFINITY;
  for (std::size_t q = 0; q < deal_->queues(); ++q) {
    const int before = deal_->count(q) - behind[q] - taken[q] - 1;
    if (before < 0) continue;
    double latency = 0, per_byte = 0;
    for (int p = 0; p < deal_->pipelines(); ++p) {
      const int from = deal_->device(p, q, before);
      int node = -1;  // devices of one node are alike as receivers
      for (const int to : deal_->devices(p, behind, taken)) {
        if (problem_->cluster->node_of(to) == node) continue;
        node = problem_->cluster->node_of(to);
        const double start = problem_->cost->transfer_time(Bytes(0), from, to).value();
        const double probe = problem_->cost->transfer_time(Bytes(kProbe), from, to).value();
        latency = std::max(latency, start);
        per_byte = std::max(per_byte, (probe - start) / static_cast<double>(kProbe));
      }
    }
    if (latency + per_byte * kProbe >= best) continue;
    best = latency + per_byte * kProbe;
    group.latency = latency;
    group.seconds_per_byte = per_byte;
  }
}

const PipelineModel::Profile& PipelineModel::slowest(int number) const {
  const std::vector<Profile>& profiles = groups_[static_cast<std::size_t>(number)].profiles;
  return *std::max_element(profiles.begin(), profiles.end(), [](const Profile& a, const Profile& b) {
    return a.scale * a.sums->total.back() < b.scale * b.sums->total.back();
  });
}

std::vector<double> PipelineModel::compute_sums(int group, bool recompute) const {
  const Profile& profile = slowest(group);
  std::vector<double> sums = profile.sums->total;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (recompute) sums[i] += profile.sums->forward[i];
    sums[i] *= profile.scale;
  }
  return sums;
}

std::vector<double> PipelineModel::forward_sums(int group) const {
  const Profile& profile = slowest(group);
  std::vector<double> sums = profile.sums->forward;
  for (double& sum : sums) sum *= profile.scale;
  return sums;
}

double PipelineModel::sample(const Group& group, std::size_t step) const {
  if (group.reduction.size() <= step) group.reduction.resize(step + 1, -1.0);
  double& seconds = group.reduction[step];
  if (seconds < 0) {
    const double bytes = kReductionUnit * power_of_four(step);
    seconds = problem_->cost->all_reduce_time(Bytes(static_cast<std::int64_t>(bytes)), group.owners).value();
  }
  return seconds;
}

double PipelineModel::reduction(int number, std::size_t begin, std::size_t end) const {
  const Group& on = groups_[static_cast<std::size_t>(number)];
  if (on.owners.size() < 2) return 0;
  const double bytes = segments_->gradient_bytes(begin, end);
  if (bytes == 0) return 0;
  if (exact_reductions_) {
    return problem_->cost->all_reduce_time(Bytes(static_cast<std::int64_t>(bytes)), on.owners).value();
  }
  const double position = bytes / kReductionUnit;
  if (position <= 1) return sample(on, 0);
  const std::size_t step = log_of_four(position);
  const double low = power_of_four(step);
  const double start = sample(on, step);
  return start + (sample(on, step + 1) - start) * (position - low) / (3 * low);
}

std::int64_t PipelineModel::most_live(int number, std::size_t begin, std::size_t end, bool recompute) const {
  const Group& on = groups_[static_cast<std::size_t>(number)];
  if (!memory_limited_) return kAnyNumber;
  const Segment segment = segments_->at(begin, end);
  const double fixed = 2 * segment.gradient_bytes +
                       segment.parameter_elements * static_cast<double>(problem_->sizes.optimizer_per_parameter) +
                       (recompute ? segment.recomputed_once : 0.0);
  // Two receives and a send of each border tensor and of its gradient, as plan::AnalyticBytes counts them.
  const double by_row = segment.passing_bytes + 3 * (segment.received_bytes + segment.sent_bytes) +
                        (recompute ? segment.recomputed_bytes : 0.0);
  const double slot_once = recompute ? 0.0 : segment.kept_once;
  const double slot_by_row = recompute ? segment.border_bytes : segment.kept_bytes;
  std::int64_t most = kAnyNumber;
  for (const Room& room : on.rooms) {
    const double left = std::min(room.bytes, rules_.cap) - rules_.margin - fixed - room.rows * by_row;
    if (left < 0) return -1;
    const double slot = slot_once + room.rows * slot_by_row;
    if (slot > 0) most = std::min(most, static_cast<std::int64_t>(std::min(left / slot, 1e12)));
  }
  return most;
}

}  // namespace millrace::partitioners
