// Makes the prefix sums of each kind of device and number of rows, and the links and limits of each group of devices.
#include "partitioners/common/pipeline_model.h"

#include <algorithm>

#include "plan/rows.h"

namespace millrace::partitioners {

PipelineModel::PipelineModel(const plan::Problem& problem, const Order& order, const SegmentTable& table,
                             int pipelines)
    : table_(&table),
      traits_(&plan::schedule_traits(problem.schedule)),
      micro_batches_(problem.micro_batches),
      sizes_(problem.sizes),
      items_(table.items()),
      devices_(problem.devices_per_pipeline(pipelines)),
      speeds_(plan::device_speeds(problem)) {
  const auto& devices = problem.cluster->devices();
  for (const cluster::Device& device : devices) {
    kinds_.push_back(static_cast<int>(std::find(devices.begin(), devices.end(), device) - devices.begin()));
  }
  groups_.resize(static_cast<std::size_t>(devices_) * static_cast<std::size_t>(devices_));
  for (int first = 0; first < devices_; ++first) {
    for (int replicas = 1; first + replicas <= devices_; ++replicas) {
      groups_[static_cast<std::size_t>(first * devices_ + replicas - 1)] =
          make_group(problem, order, pipelines, first, replicas);
    }
  }
  // Time per row does not grow with rows, so whole micro-batches on every device are the least work.
  const std::int64_t rows = problem.micro_batch_rows(pipelines);
  double rate = 0;
  for (int device = 0; device < devices_; ++device) {
    const double alone = profiles_[profile(problem, order, device, rows)].total[items_];
    if (alone > 0) rate += 1.0 / alone;
  }
  least_bottleneck_ = rate > 0 ? 1.0 / rate : 0.0;
}

std::size_t PipelineModel::profile(const plan::Problem& problem, const Order& order, int device, std::int64_t rows) {
  const int kind = kinds_[static_cast<std::size_t>(device)];
  for (std::size_t i = 0; i < profiles_.size(); ++i) {
    if (profiles_[i].kind == kind && profiles_[i].rows == rows) return i;
  }
  Profile made{kind, rows, {0.0}, {0.0}};
  double forward = 0, total = 0;
  for (std::size_t item = 0; item < items_; ++item) {
    for (std::size_t at = table_->points()[item]; at < table_->points()[item + 1]; ++at) {
      const cost::OpTime time = problem.cost->op_time(order[at], rows, kind);
      forward += time.forward.value();
      total += time.total().value();
    }
    made.forward.push_back(forward);
    made.total.push_back(total);
  }
  profiles_.push_back(std::move(made));
  return profiles_.size() - 1;
}

PipelineModel::Group PipelineModel::make_group(const plan::Problem& problem, const Order& order, int pipelines,
                                               int first, int replicas) {
  Group group;
  for (int p = 0; p < pipelines; ++p) {
    const int begin = p * devices_ + first;
    const std::vector<double> speeds(speeds_.begin() + begin, speeds_.begin() + begin + replicas);
    const std::vector<std::int64_t> rows = largest_remainder(problem.micro_batch_rows(pipelines), speeds);
    for (int r = 0; r < replicas; ++r) {
      const std::int64_t count = rows[static_cast<std::size_t>(r)];
      const std::size_t used = profile(problem, order, begin + r, count);
      if (std::find(group.profiles.begin(), group.profiles.end(), used) == group.profiles.end()) {
        group.profiles.push_back(used);
      }
      group.most_rows = std::max(group.most_rows, static_cast<double>(count));
      if (const auto limit = problem.memory_of(begin + r)) {
        memory_limited_ = true;
        const Room room{static_cast<double>(count), static_cast<double>(limit->value())};
        const auto same = [&](const Room& other) { return other.rows == room.rows && other.bytes == room.bytes; };
        if (std::none_of(group.rooms.begin(), group.rooms.end(), same)) group.rooms.push_back(room);
      }
    }
    if (first > 0) {
      constexpr std::int64_t kProbe = 1 << 20;
      const double latency = problem.cost->transfer_time(Bytes(0), begin - 1, begin).value();
      const double probe = problem.cost->transfer_time(Bytes(kProbe), begin - 1, begin).value();
      group.latency = std::max(group.latency, latency);
      group.seconds_per_byte = std::max(group.seconds_per_byte, (probe - latency) / static_cast<double>(kProbe));
    }
  }
  sample_reduction(group, problem, pipelines, first, replicas);
  return group;
}

void PipelineModel::sample_reduction(Group& group, const plan::Problem& problem, int pipelines, int first,
                                     int replicas) const {
  if (pipelines * replicas < 2) return;
  std::vector<int> owners;
  for (int p = 0; p < pipelines; ++p) {
    for (int r = 0; r < replicas; ++r) owners.push_back(p * devices_ + first + r);
  }
  const double most = gradient_bytes(0, items_);
  for (double bytes = kReductionUnit;; bytes *= 2) {
    group.reduction.push_back(
        problem.cost->all_reduce_time(Bytes(static_cast<std::int64_t>(bytes)), owners).value());
    if (bytes > most) break;
  }
}

StageCost PipelineModel::cost(int first, int replicas, std::size_t begin, std::size_t end) const {
  const Group& devices = group(first, replicas);
  double slowest = -1, forward = 0;
  for (const std::size_t p : devices.profiles) {
    const double total = profiles_[p].total[end] - profiles_[p].total[begin];
    if (total <= slowest) continue;
    slowest = total;
    forward = profiles_[p].forward[end] - profiles_[p].forward[begin];
  }
  const Segment& segment = table_->at(begin, end);
  const double transfer = segment.received_tensors * devices.latency +
                          segment.received_bytes * devices.most_rows * devices.seconds_per_byte;
  return {forward + transfer, slowest - forward + transfer};
}

double PipelineModel::gradient_bytes(std::size_t begin, std::size_t end) const {
  const Segment& segment = table_->at(begin, end);
  return segment.parameter_elements * static_cast<double>(sizes_.real) + segment.buffer_bytes;
}

double PipelineModel::reduction(int first, int replicas, std::size_t begin, std::size_t end) const {
  const std::vector<double>& samples = group(first, replicas).reduction;
  const double bytes = gradient_bytes(begin, end);
  if (samples.empty() || bytes == 0) return 0;
  const double position = bytes / kReductionUnit;
  if (position <= 1) return samples.front();
  const auto step = std::min(static_cast<std::size_t>(std::ilogb(position)), samples.size() - 2);
  const double low = std::ldexp(1.0, static_cast<int>(step));
  return samples[step] + (samples[step + 1] - samples[step]) * (position - low) / low;
}

bool PipelineModel::fits(int first, int replicas, std::size_t begin, std::size_t end, std::int64_t live,
                         double margin) const {
  const Segment& segment = table_->at(begin, end);
  const auto real = static_cast<double>(sizes_.real);
  const double fixed = segment.parameter_elements * (2 * real + static_cast<double>(sizes_.optimizer_per_parameter)) +
                       2 * segment.buffer_bytes + static_cast<double>(live) * segment.kept_bytes_once;
  // Two receives and a send of each border tensor and of its gradient, as plan::AnalyticBytes counts them.
  const double by_row = static_cast<double>(live) * segment.kept_bytes + segment.widest_bytes +
                        3 * (segment.received_bytes + segment.sent_bytes);
  const auto& rooms = group(first, replicas).rooms;
  return std::all_of(rooms.begin(), rooms.end(),
                     [&](const Room& room) { return fixed + room.rows * by_row + margin <= room.bytes; });
}

}  // namespace millrace::partitioners
