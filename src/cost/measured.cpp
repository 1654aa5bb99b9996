// Lines between measured numbers of rows.
#include "cost/measured.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <numeric>

#include "cost/collectives.h"

namespace millrace::cost {
namespace {

// Afterwards times do not fall and times per row do not grow. Noise mostly adds time, so what is too long gives way.
void smooth(const std::vector<double>& rows, std::vector<double>& times) {
  for (std::size_t i = times.size() - 1; i-- > 0;) times[i] = std::min(times[i], times[i + 1]);
  for (std::size_t i = 1; i < times.size(); ++i) times[i] = std::min(times[i], times[i - 1] * rows[i] / rows[i - 1]);
}

}  // namespace

MeasuredCost::MeasuredCost(const Profile& profile, const cluster::Cluster& cluster, const FactoredLayers& factored)
    : cluster_(&cluster) {
  for (const MeasuredSize& size : profile.sizes) rows_.push_back(static_cast<double>(size.rows));
  times_.resize(profile.operators.size());
  for (std::size_t op = 0; op < times_.size(); ++op) {
    for (const MeasuredSize& size : profile.sizes) {
      const MeasuredPasses& passes = size.operators[op];
      times_[op][kForward].push_back(passes.forward.median.value());
      times_[op][kBackwardInput].push_back(passes.backward_input.median.value());
      times_[op][kBackwardWeight].push_back(passes.backward_weight.median.value());
    }
    for (std::vector<double>& times : times_[op]) smooth(rows_, times);
  }
  take_whole_passes(profile.sizes.back());
  for (const OpId layer : factored.layers) {
    std::vector<double>& times = times_[static_cast<std::size_t>(layer)][kBackwardWeight];
    const double whole = times.back();
    for (std::size_t i = 0; i < times.size(); ++i) times[i] = whole * rows_[i] / static_cast<double>(factored.batch);
  }
  double seconds = 0, bytes = 0;
  for (const MeasuredOperator& op : profile.operators) {
    seconds += op.update.median.value();
    bytes += static_cast<double>(op.parameters.value());
  }
  if (bytes > 0) update_per_byte_ = seconds / bytes;
  const std::size_t ranks = profile.job.speeds.size();
  if (ranks < 2 || static_cast<int>(ranks) != cluster.size()) return;
  std::vector<int> everyone(ranks);
  std::iota(everyone.begin(), everyone.end(), 0);
  for (std::size_t i = 0; i < profile.job.reduced.size(); ++i) {
    const Bytes size = profile.job.reduced[i];
    const Seconds expected = cheapest_all_reduce(size, everyone, cluster);
    if (expected > Seconds(0)) {
      reduction_factors_.emplace_back(static_cast<double>(size.value()), profile.job.reductions[i] / expected);
    }
  }
}

// A kernel in a hundred is disturbed: medians of operators do not know of it, the median of all of them in a row does,
// and so does training. One factor for all sizes keeps what smooth() has made.
void MeasuredCost::take_whole_passes(const MeasuredSize& longest) {
  const auto scale = [&](Seconds whole, std::initializer_list<Pass> passes) {
    double sum = 0;
    for (const auto& times : times_) {
      for (const Pass pass : passes) sum += times[pass].back();
    }
    if (sum <= 0 || whole <= Seconds(0)) return;
    for (auto& times : times_) {
      for (const Pass pass : passes) {
        for (double& time : times[pass]) time *= whole.value() / sum;
      }
    }
  };
  scale(longest.forward.median, {kForward});
  scale(longest.backward.median, {kBackwardInput, kBackwardWeight});
}

double MeasuredCost::seconds(OpId op, Pass pass, double rows) const {
  const std::vector<double>& times = times_[static_cast<std::size_t>(op)][pass];
  const auto above = std::lower_bound(rows_.begin(), rows_.end(), rows);
  if (above == rows_.begin()) return times.front() * rows / rows_.front();
  if (above == rows_.end()) return times.back() * rows / rows_.back();
  const auto high = static_cast<std::size_t>(above - rows_.begin()), low = high - 1;
  const double part = (rows - rows_[low]) / (rows_[high] - rows_[low]);
  return times[low] + part * (times[high] - times[low]);
}

OpTime MeasuredCost::op_time(OpId op, std::int64_t rows, int device) const {
  if (rows == 0) return {};
  const double count = static_cast<double>(rows), speed = cluster_->device(device).speed;
  return {Seconds(seconds(op, kForward, count) / speed), Seconds(seconds(op, kBackwardInput, count) / speed),
          Seconds(seconds(op, kBackwardWeight, count) / speed)};
}

Seconds MeasuredCost::transfer_time(Bytes amount, int from, int to) const {
  return cluster_->link(from, to).time(amount);
}

Seconds MeasuredCost::all_reduce_time(Bytes amount, std::span<const int> devices) const {
  return cheapest_all_reduce(amount, devices, *cluster_) * reduction_factor(static_cast<double>(amount.value()));
}

// Between two measured sizes a line over the logarithm of the size.
double MeasuredCost::reduction_factor(double bytes) const {
  const auto& known = reduction_factors_;
  if (known.empty()) return 1;
  const auto above = std::find_if(known.begin(), known.end(), [&](const auto& entry) { return entry.first >= bytes; });
  if (above == known.begin()) return known.front().second;
  if (above == known.end()) return known.back().second;
  const auto& [low, low_factor] = *(above - 1);
  const auto& [high, high_factor] = *above;
  return low_factor + (high_factor - low_factor) * std::log(bytes / low) / std::log(high / low);
}

std::optional<Seconds> MeasuredCost::update_time(Bytes amount, int device) const {
  return Seconds(update_per_byte_ * static_cast<double>(amount.value()) / cluster_->device(device).speed);
}

}  // namespace millrace::cost
