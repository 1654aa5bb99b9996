// Batch norm, with the ReLU or the addition and ReLU behind it: for each group of channels statistics, then values,
// while the group is in the caches.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/onednn/channel_loops.h"
#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"

namespace millrace::kernels::onednn {
namespace {

using Totals = std::array<double, kRunLanes>;

/// Elements whose moments are one fp32 sum: they stay in the first cache, and rounding stays small.
constexpr std::int64_t kMomentElements = 4096;

/// Mean and Σ (x − mean)² by channel of a group, merged piece by piece by Chan's formula.
struct ChannelMoments {
  double count = 0;
  Totals mean{}, squares{};
};

class BatchNorm : public OpKernel {
 public:
  BatchNorm(const Site& site, NormTail tail)
      : threads_(site.threads),
        rows_(site.rows),
        channels_(site.input_dims()[0]),
        padded_(padded(channels_, site.block)),
        places_(element_count(site.input_dims()) / channels_),
        epsilon_(site.op.attributes.real("epsilon")),
        training_(site.training),
        tail_(tail),
        width_(site.block > 0 ? site.block
               : places_ > 1  ? 1
                              : kRunLanes),
        groups_((channels_ + width_ - 1) / width_) {}

  /// Of each channel: mean, 1/σ, from backward_input Σ dy and Σ dy·x̂ (which a forward that runs again between the
  /// halves of backward must leave alone), and with ReLU scale and shift.
  std::int64_t extra_bytes() const override {
    return training_ ? (keeps_scale() ? 6 : 4) * channels_ * kFloatBytes : 0;
  }

  bool overwrites_gradient() const override { return true; }
  bool adds_gradient() const override { return tail_ == NormTail::add_relu; }

  void forward(const OpCall& call) override {
    parallel_tasks(threads_, groups_, rows_ * channels_ * places_, [&](std::int64_t group, int) {
      if (call.again && training_ && keeps_scale()) {
        normalise(call, group, kept_scale(call, group));
        return;
      }
      ChannelMoments moments;
      const std::int64_t first = group * width_;
      if (training_ && call.valid_rows > 0) {
        moments = statistics(input(call), group, call.valid_rows);
        for (double& square : moments.squares) square /= moments.count;
        deposit(call, group, moments.mean, moments.squares);
      } else {
        for (std::int64_t l = 0; l < width(group); ++l) {
          moments.mean[at(l)] = buffer(call, 0)[first + l];
          moments.squares[at(l)] = buffer(call, 1)[first + l];
        }
      }
      RunScale by;
      for (std::int64_t l = 0; l < width(group); ++l) {
        const double mean = moments.mean[at(l)];
        const double inverse = 1 / std::sqrt(moments.squares[at(l)] + epsilon_);
        const double factor = inverse * parameter(call, 0)[first + l];
        by.scale[at(l)] = static_cast<float>(factor);
        by.shift[at(l)] = static_cast<float>(parameter(call, 1)[first + l] - mean * factor);
        if (!training_) continue;
        extra(call)[first + l] = static_cast<float>(mean);
        extra(call)[channels_ + first + l] = static_cast<float>(inverse);
        if (!keeps_scale()) continue;
        extra(call)[4 * channels_ + first + l] = by.scale[at(l)];
        extra(call)[5 * channels_ + first + l] = by.shift[at(l)];
      }
      spread(by.scale);
      spread(by.shift);
      normalise(call, group, by);
    });
  }

  // With x̂ = (x − mean)/σ over N valid elements: dx = w/σ · (dy − Σdy/N − x̂ · Σ(dy·x̂)/N).
  void backward_input(const OpCall& call) override {
    parallel_tasks(threads_, groups_, rows_ * channels_ * places_, [&](std::int64_t group, int) {
      const std::int64_t first = group * width_;
      const RunScale by = keeps_scale() ? kept_scale(call, group) : RunScale{};
      const Lanes inverse = kept(call, 1, group);
      RunSlope slope;
      slope.mean = kept(call, 0, group);
      Totals sum{};
      Totals projection{};
      for (std::int64_t row = 0; row < rows_; ++row) {
        if (row >= call.valid_rows && tail_ != NormTail::add_relu) break;
        const RunProjections sums = project(call, offset(row, group), length(group), slope.mean, by);
        if (row >= call.valid_rows) continue;
        join(sums.sum, sum);
        join(sums.projection, projection);
      }
      const double count = static_cast<double>(std::max<std::int64_t>(1, call.valid_rows) * places_);
      for (std::int64_t l = 0; l < width(group); ++l) {
        const double xhat = projection[at(l)] * inverse[at(l)];
        extra(call)[2 * channels_ + first + l] = static_cast<float>(sum[at(l)]);
        extra(call)[3 * channels_ + first + l] = static_cast<float>(xhat);
        slope.factor[at(l)] = parameter(call, 0)[first + l] * inverse[at(l)];
        slope.a[at(l)] = static_cast<float>(sum[at(l)] / count);
        slope.b[at(l)] = static_cast<float>(inverse[at(l)] * xhat / count);
      }
      if (!input_gradient(call)) return;
      for (Lanes* lanes : {&slope.factor, &slope.a, &slope.b}) spread(*lanes);
      for (std::int64_t row = rows_; row-- > 0;) {  // what was read last is in the caches
        const std::int64_t begin = offset(row, group);
        float* const dx = input_gradient(call) + begin;
        if (row >= call.valid_rows) {
          std::fill_n(dx, length(group), 0.0F);
        } else if (tail_ == NormTail::relu) {
          run_gradients_relu(input(call) + begin, output_gradient(call) + begin, length(group), slope, by, dx);
        } else {
          run_gradients(input(call) + begin, gradient_behind(call) + begin, length(group), slope, dx);
        }
      }
    });
  }

  void backward_weight(const OpCall& call) override {
    for (std::int64_t c = 0; c < channels_; ++c) {
      parameter_gradient(call, 0)[c] += extra(call)[3 * channels_ + c];
      parameter_gradient(call, 1)[c] += extra(call)[2 * channels_ + c];
    }
  }

 private:
  static std::size_t at(std::int64_t lane) { return static_cast<std::size_t>(lane); }

  /// A batch norm tells what ReLU alone stops from its input.
  bool keeps_scale() const { return tail_ == NormTail::relu; }

  /// Channels of a group.
  std::int64_t width(std::int64_t group) const { return std::min(width_, channels_ - group * width_); }

  /// The group's run in a sample. A block's channels that only fill it up stay zero: their scales are.
  std::int64_t offset(std::int64_t row, std::int64_t group) const { return (row * padded_ + group * width_) * places_; }
  std::int64_t length(std::int64_t group) const { return std::min(width_, padded_ - group * width_) * places_; }

  /// The numbers of a group in the `which`-th list of the extras, in each lane of their channels.
  Lanes kept(const OpCall& call, std::int64_t which, std::int64_t group) const {
    Lanes lanes{};
    std::copy_n(extra(call) + which * channels_ + group * width_, width(group), lanes.begin());
    spread(lanes);
    return lanes;
  }
  RunScale kept_scale(const OpCall& call, std::int64_t group) const {
    return {kept(call, 4, group), kept(call, 5, group)};
  }

  /// From a channel's first lane to all of them.
  void spread(Lanes& lanes) const {
    for (std::int64_t l = width_; l < kRunLanes; ++l) lanes[at(l)] = lanes[at(l - width_)];
  }

  /// totals += the sums of a run.
  void join(const Lanes& lanes, Totals& totals) const {
    for (std::int64_t l = 0; l < kRunLanes; ++l) totals[at(l % width_)] += static_cast<double>(lanes[at(l)]);
  }

  void normalise(const OpCall& call, std::int64_t group, const RunScale& by) const {
    for (std::int64_t row = rows_; row-- > 0;) {  // what was read last is in the caches
      const std::int64_t begin = offset(row, group);
      const float* const x = input(call) + begin;
      float* const y = output(call) + begin;
      switch (tail_) {
        case NormTail::none:
          run_normalise(x, length(group), by, y);
          break;
        case NormTail::relu:
          run_normalise_relu(x, length(group), by, y);
          break;
        case NormTail::add_relu:
          run_normalise_add_relu(x, input(call, 1) + begin, length(group), by, y);
          break;
      }
    }
  }

  RunProjections project(const OpCall& call, std::int64_t begin, std::int64_t n, const Lanes& mean,
                         const RunScale& by) const {
    RunProjections sums;
    const float* const x = input(call) + begin;
    const float* const dy = output_gradient(call) + begin;
    switch (tail_) {
      case NormTail::none:
        run_projections(x, dy, n, mean, sums);
        break;
      case NormTail::relu:
        run_projections_relu(x, dy, n, mean, by, sums);
        break;
      case NormTail::add_relu: {
        const auto* const more = static_cast<const float*>(call.output_gradients[1]);
        run_projections_add_relu(x, output(call) + begin, dy, more ? more + begin : nullptr, n, mean,
                                 gradient_behind(call) + begin, sums);
        break;
      }
    }
    return sums;
  }

  /// The gradient of the sum in front of ReLU, which is that of both terms: project() writes it to the other term's
  /// place; to that of the input's where nobody wants the other term's, or over the output's.
  float* gradient_behind(const OpCall& call) const {
    if (tail_ == NormTail::add_relu) {
      for (const std::size_t k : {1, 0}) {
        if (input_gradient(call, k)) return input_gradient(call, k);
      }
    }
    return static_cast<float*>(const_cast<void*>(call.output_gradients[0]));
  }

  /// Over the first `valid` samples, each element read once: a piece's deviations are from the mean of all before it.
  ChannelMoments statistics(const float* x, std::int64_t group, std::int64_t valid) const {
    ChannelMoments all;
    Lanes about{};
    for (std::int64_t row = 0; row < valid; ++row) {
      const float* const run = x + offset(row, group);
      for (std::int64_t begin = 0; begin < length(group); begin += kMomentElements) {
        const std::int64_t n = std::min(kMomentElements, length(group) - begin);
        const double count = static_cast<double>(std::max<std::int64_t>(1, n / width_));
        Lanes sum{};
        Lanes squares{};
        if (all.count == 0) {
          run_moments(run + begin, n, about, sum, squares);
          Totals total{};
          join(sum, total);
          for (std::int64_t l = 0; l < width_; ++l) about[at(l)] = static_cast<float>(total[at(l)] / count);
          spread(about);
        }
        run_moments(run + begin, n, about, sum, squares);
        merge(sum, squares, count, about, all);
      }
    }
    return all;
  }

  /// The piece's own sums are about `about`, which then is the mean of all so far.
  void merge(const Lanes& sum, const Lanes& squares, double count, Lanes& about, ChannelMoments& all) const {
    Totals first{};
    Totals second{};
    join(sum, first);
    join(squares, second);
    const double part = 1 / count;
    const double share = count / (all.count + count);
    const double weight = all.count * share;
    for (std::int64_t l = 0; l < width_; ++l) {
      const double shift = first[at(l)] * part;
      const double delta = static_cast<double>(about[at(l)]) + shift - all.mean[at(l)];
      all.squares[at(l)] += std::max(0.0, second[at(l)] - first[at(l)] * shift) + delta * delta * weight;
      all.mean[at(l)] += delta * share;
      about[at(l)] = static_cast<float>(all.mean[at(l)]);
    }
    all.count += count;
    spread(about);
  }

  /// The micro-batch's share of the step's running statistics; the variance unbiased.
  void deposit(const OpCall& call, std::int64_t group, const Totals& mean, const Totals& variance) const {
    const double count = static_cast<double>(call.valid_rows * places_);
    const double share = static_cast<double>(call.valid_rows) * call.row_weight;
    for (std::int64_t l = 0; l < width(group); ++l) {
      const double unbiased = count > 1 ? variance[at(l)] * count / (count - 1) : variance[at(l)];
      buffer_gradient(call, 0)[group * width_ + l] += static_cast<float>(share * mean[at(l)]);
      buffer_gradient(call, 1)[group * width_ + l] += static_cast<float>(share * unbiased);
    }
  }

  int threads_;
  std::int64_t rows_, channels_;
  std::int64_t padded_;  // channels with those that fill up the last block
  std::int64_t places_;
  double epsilon_;
  bool training_;
  NormTail tail_;
  std::int64_t width_;  // channels of a group: a block, one of a plain image, or 16 without image axes
  std::int64_t groups_;
};

}  // namespace

std::unique_ptr<OpKernel> make_batch_norm(const Site& site, NormTail tail) {
  return std::make_unique<BatchNorm>(site, tail);
}

}  // namespace millrace::kernels::onednn
