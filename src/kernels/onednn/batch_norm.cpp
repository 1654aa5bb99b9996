// Batch norm in vectors of 16: of channels where they lie beside each other (blocks, or no image axes), else of places.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/vector_clones.h"

namespace millrace::kernels::onednn {
namespace {

constexpr std::int64_t kLanes = 16;
using Lanes = std::array<float, kLanes>;
using Totals = std::array<double, kLanes>;

/// Vectors of `lanes` floats, `stride` apart.
struct Vectors {
  std::int64_t count = 0, lanes = 0, stride = 0;
};

// Calls body(lanes), with the full width as a constant for the compiler.
template <class Body>
MILLRACE_INLINE void for_lanes(std::int64_t lanes, Body body) {
  if (lanes == kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) body(l);
  } else {
    for (std::int64_t l = 0; l < lanes; ++l) body(l);
  }
}

MILLRACE_VECTOR_CLONES void sums(const float* x, const Vectors& v, Lanes& sum) {
  Lanes s = sum;
  for (std::int64_t i = 0; i < v.count; ++i) {
    const float* xi = x + i * v.stride;
    for_lanes(v.lanes, [&](std::int64_t l) { s[static_cast<std::size_t>(l)] += xi[l]; });
  }
  sum = s;
}

MILLRACE_VECTOR_CLONES void squares(const float* x, const Vectors& v, const Lanes& mean, Lanes& sum) {
  Lanes s = sum;
  const Lanes m = mean;
  for (std::int64_t i = 0; i < v.count; ++i) {
    const float* xi = x + i * v.stride;
    for_lanes(v.lanes, [&](std::int64_t l) {
      const float d = xi[l] - m[static_cast<std::size_t>(l)];
      s[static_cast<std::size_t>(l)] += d * d;
    });
  }
  sum = s;
}

// y = x · scale + shift, or no less than zero where ReLU follows.
template <bool kRelu>
MILLRACE_INLINE void normalise_body(const float* x, const Vectors& v, const Lanes& scale, const Lanes& shift,
                                    float* y) {
  const Lanes a = scale;
  const Lanes b = shift;
  for (std::int64_t i = 0; i < v.count; ++i) {
    const float* xi = x + i * v.stride;
    float* yi = y + i * v.stride;
    for_lanes(v.lanes, [&](std::int64_t l) {
      const float value = xi[l] * a[static_cast<std::size_t>(l)] + b[static_cast<std::size_t>(l)];
      yi[l] = !kRelu || value > 0 ? value : 0.0F;
    });
  }
}
MILLRACE_VECTOR_CLONES void normalise(const float* x, const Vectors& v, const Lanes& scale, const Lanes& shift,
                                      float* y) {
  normalise_body<false>(x, v, scale, shift, y);
}
MILLRACE_VECTOR_CLONES void normalise_relu(const float* x, const Vectors& v, const Lanes& scale, const Lanes& shift,
                                           float* y) {
  normalise_body<true>(x, v, scale, shift, y);
}

/// Of one group of channels. With ReLU the gradient counts where x · scale + shift, its input in forward, is above
/// zero.
struct BatchNormBackward {
  Lanes mean{}, scale{}, shift{};
  Lanes factor{}, a{}, b{};  // of dx
};

// Σ dy and Σ dy · (x − mean)
template <bool kRelu>
MILLRACE_INLINE void projections_body(const float* x, const float* dy, const Vectors& v, const BatchNormBackward& back,
                                      Lanes& sum, Lanes& projection) {
  Lanes s = sum;
  Lanes p = projection;
  const Lanes m = back.mean;
  const Lanes scale = back.scale;
  const Lanes shift = back.shift;
  for (std::int64_t i = 0; i < v.count; ++i) {
    const float* xi = x + i * v.stride;
    const float* gi = dy + i * v.stride;
    for_lanes(v.lanes, [&](std::int64_t l) {
      const auto j = static_cast<std::size_t>(l);
      const float g = !kRelu || xi[l] * scale[j] + shift[j] > 0 ? gi[l] : 0.0F;
      s[j] += g;
      p[j] += g * (xi[l] - m[j]);
    });
  }
  sum = s;
  projection = p;
}
MILLRACE_VECTOR_CLONES void projections(const float* x, const float* dy, const Vectors& v,
                                        const BatchNormBackward& back, Lanes& sum, Lanes& projection) {
  projections_body<false>(x, dy, v, back, sum, projection);
}
MILLRACE_VECTOR_CLONES void projections_relu(const float* x, const float* dy, const Vectors& v,
                                             const BatchNormBackward& back, Lanes& sum, Lanes& projection) {
  projections_body<true>(x, dy, v, back, sum, projection);
}

// dx = factor · (dy − a − (x − mean) · b)
template <bool kRelu>
MILLRACE_INLINE void gradients_body(const float* x, const float* dy, const Vectors& v, const BatchNormBackward& back,
                                    float* dx) {
  const Lanes m = back.mean;
  const Lanes f = back.factor;
  const Lanes c = back.a;
  const Lanes d = back.b;
  const Lanes scale = back.scale;
  const Lanes shift = back.shift;
  for (std::int64_t i = 0; i < v.count; ++i) {
    const float* xi = x + i * v.stride;
    const float* gi = dy + i * v.stride;
    float* oi = dx + i * v.stride;
    Lanes result;  // dx may be dy: all is read before anything is written
    for_lanes(v.lanes, [&](std::int64_t l) {
      const auto j = static_cast<std::size_t>(l);
      const float g = !kRelu || xi[l] * scale[j] + shift[j] > 0 ? gi[l] : 0.0F;
      result[j] = f[j] * (g - c[j] - (xi[l] - m[j]) * d[j]);
    });
    for_lanes(v.lanes, [&](std::int64_t l) { oi[l] = result[static_cast<std::size_t>(l)]; });
  }
}
MILLRACE_VECTOR_CLONES void gradients(const float* x, const float* dy, const Vectors& v, const BatchNormBackward& back,
                                      float* dx) {
  gradients_body<false>(x, dy, v, back, dx);
}
MILLRACE_VECTOR_CLONES void gradients_relu(const float* x, const float* dy, const Vectors& v,
                                           const BatchNormBackward& back, float* dx) {
  gradients_body<true>(x, dy, v, back, dx);
}

class BatchNorm : public OpKernel {
 public:
  BatchNorm(const Site& site, bool relu)
      : threads_(site.threads),
        rows_(site.rows),
        channels_(site.input_dims()[0]),
        padded_(padded(channels_, site.block)),
        places_(element_count(site.input_dims()) / channels_),
        epsilon_(site.op.attributes.real("epsilon")),
        training_(site.training),
        relu_(relu),
        across_(site.block == 0 && places_ > 1),
        width_(across_      ? 1
               : site.block ? site.block
                            : kLanes),
        groups_((channels_ + width_ - 1) / width_) {}

  /// Of each channel: mean, 1/σ, from backward_input Σ dy and Σ dy·x̂ (which a forward that runs again between the
  /// halves of backward must leave alone), and with ReLU scale and shift.
  std::int64_t extra_bytes() const override { return training_ ? (relu_ ? 6 : 4) * channels_ * kFloatBytes : 0; }

  bool overwrites_gradient() const override { return true; }

  void forward(const OpCall& call) override {
    parallel_tasks(threads_, groups_, rows_ * channels_ * places_, [&](std::int64_t group, int) {
      if (call.again && training_ && relu_) {
        normalise_group(call, group, kept(call, 4, group), kept(call, 5, group));
        return;
      }
      Totals mean{};
      Totals variance{};
      const std::int64_t first = group * width_;
      if (training_ && call.valid_rows > 0) {
        statistics(input(call), group, call.valid_rows, mean, variance);
        deposit(call, group, mean, variance);
      } else {
        for (std::int64_t l = 0; l < width(group); ++l) {
          mean[at(l)] = buffer(call, 0)[first + l];
          variance[at(l)] = buffer(call, 1)[first + l];
        }
      }
      Lanes scale{};
      Lanes shift{};
      for (std::int64_t l = 0; l < width(group); ++l) {
        const double inverse = 1 / std::sqrt(variance[at(l)] + epsilon_);
        const double factor = inverse * parameter(call, 0)[first + l];
        scale[at(l)] = static_cast<float>(factor);
        shift[at(l)] = static_cast<float>(parameter(call, 1)[first + l] - mean[at(l)] * factor);
        if (!training_) continue;
        extra(call)[first + l] = static_cast<float>(mean[at(l)]);
        extra(call)[channels_ + first + l] = static_cast<float>(inverse);
        if (!relu_) continue;
        extra(call)[4 * channels_ + first + l] = scale[at(l)];
        extra(call)[5 * channels_ + first + l] = shift[at(l)];
      }
      normalise_group(call, group, scale, shift);
    });
  }

  // With x̂ = (x − mean)/σ over N valid elements: dx = w/σ · (dy − Σdy/N − x̂ · Σ(dy·x̂)/N).
  void backward_input(const OpCall& call) override {
    parallel_tasks(threads_, groups_, rows_ * channels_ * places_, [&](std::int64_t group, int) {
      const std::int64_t first = group * width_;
      BatchNormBackward back;
      Lanes inverse{};
      for (std::int64_t l = 0; l < width(group); ++l) {
        back.mean[at(l)] = extra(call)[first + l];
        inverse[at(l)] = extra(call)[channels_ + first + l];
        if (!relu_) continue;
        back.scale[at(l)] = extra(call)[4 * channels_ + first + l];
        back.shift[at(l)] = extra(call)[5 * channels_ + first + l];
      }
      for (Lanes* lanes : {&back.mean, &inverse, &back.scale, &back.shift}) spread(*lanes);
      Totals sum{};
      Totals projection{};
      for (std::int64_t row = 0; row < call.valid_rows; ++row) {
        Lanes s{};
        Lanes p{};
        visit(row, group, [&](std::int64_t offset, const Vectors& v) {
          (relu_ ? projections_relu : projections)(input(call) + offset, output_gradient(call) + offset, v, back, s, p);
        });
        join(s, sum);
        join(p, projection);
      }
      const double count = static_cast<double>(std::max<std::int64_t>(1, call.valid_rows) * places_);
      for (std::int64_t l = 0; l < width(group); ++l) {
        const double xhat = projection[at(l)] * inverse[at(l)];
        extra(call)[2 * channels_ + first + l] = static_cast<float>(sum[at(l)]);
        extra(call)[3 * channels_ + first + l] = static_cast<float>(xhat);
        back.factor[at(l)] = parameter(call, 0)[first + l] * inverse[at(l)];
        back.a[at(l)] = static_cast<float>(sum[at(l)] / count);
        back.b[at(l)] = static_cast<float>(inverse[at(l)] * xhat / count);
      }
      if (!input_gradient(call)) return;
      for (Lanes* lanes : {&back.factor, &back.a, &back.b}) spread(*lanes);
      for (std::int64_t row = 0; row < rows_; ++row) {
        visit(row, group, [&](std::int64_t offset, const Vectors& v) {
          float* dx = input_gradient(call) + offset;
          if (row < call.valid_rows) {
            (relu_ ? gradients_relu : gradients)(input(call) + offset, output_gradient(call) + offset, v, back, dx);
          } else {
            for (std::int64_t i = 0; i < v.count; ++i) std::fill_n(dx + i * v.stride, v.lanes, 0.0F);
          }
        });
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

  /// Channels of a group.
  std::int64_t width(std::int64_t group) const { return std::min(width_, channels_ - group * width_); }

  /// The numbers of a group in the `which`-th list of the extras.
  Lanes kept(const OpCall& call, std::int64_t which, std::int64_t group) const {
    Lanes lanes{};
    std::copy_n(extra(call) + which * channels_ + group * width_, width(group), lanes.begin());
    return lanes;
  }

  void normalise_group(const OpCall& call, std::int64_t group, Lanes scale, Lanes shift) const {
    spread(scale);
    spread(shift);
    for (std::int64_t row = 0; row < rows_; ++row) {
      visit(row, group, [&](std::int64_t offset, const Vectors& v) {
        (relu_ ? normalise_relu : normalise)(input(call) + offset, v, scale, shift, output(call) + offset);
      });
    }
  }

  /// f(offset, vectors) for the elements of one group in one sample.
  template <class F>
  void visit(std::int64_t row, std::int64_t group, F&& f) const {
    const std::int64_t sample = row * padded_ * places_;
    if (!across_) {
      // A block's channels that only fill it up stay zero: their scales are.
      const std::int64_t lanes = std::min(width_, padded_ - group * width_);
      f(sample + group * width_ * places_, Vectors{places_, lanes, width_});
      return;
    }
    const std::int64_t whole = places_ / kLanes;
    const std::int64_t begin = sample + group * places_;
    f(begin, Vectors{whole, kLanes, kLanes});
    if (whole * kLanes < places_) f(begin + whole * kLanes, Vectors{1, places_ - whole * kLanes, kLanes});
  }

  /// The channel's value in every lane, where lanes are places of one channel.
  void spread(Lanes& lanes) const {
    if (across_) lanes.fill(lanes[0]);
  }

  /// totals += the sums of one sample.
  void join(const Lanes& lanes, Totals& totals) const {
    for (std::size_t l = 0; l < lanes.size(); ++l) totals[across_ ? 0 : l] += static_cast<double>(lanes[l]);
  }

  /// Mean and biased variance over the first `valid` samples; each sample's own moments, read while it is in the
  /// cache, are merged by Chan's formula.
  void statistics(const float* x, std::int64_t group, std::int64_t valid, Totals& mean, Totals& variance) const {
    const double places = static_cast<double>(places_);
    for (std::int64_t row = 0; row < valid; ++row) {
      Lanes s{};
      visit(row, group, [&](std::int64_t offset, const Vectors& v) { sums(x + offset, v, s); });
      Totals total{};
      join(s, total);
      Lanes local{};
      for (std::size_t l = 0; l < local.size(); ++l) local[l] = static_cast<float>(total[l] / places);
      spread(local);
      Lanes q{};
      visit(row, group, [&](std::int64_t offset, const Vectors& v) { squares(x + offset, v, local, q); });
      Totals square{};
      join(q, square);
      const double before = static_cast<double>(row) * places;
      for (std::size_t l = 0; l < total.size(); ++l) {
        const double exact = total[l] / places;
        const double rounding = exact - static_cast<double>(local[l]);  // the squares are about the rounded mean
        const double delta = exact - mean[l];
        variance[l] += square[l] - places * rounding * rounding + delta * delta * before * places / (before + places);
        mean[l] += delta * places / (before + places);
      }
    }
    for (double& v : variance) v /= static_cast<double>(valid) * places;
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
  bool relu_;           // the operator behind it is part of it
  bool across_;         // lanes are places of one channel
  std::int64_t width_;  // channels of a group
  std::int64_t groups_;
};

}  // namespace

std::unique_ptr<OpKernel> make_batch_norm(const Site& site, bool relu) {
  return std::make_unique<BatchNorm>(site, relu);
}

}  // namespace millrace::kernels::onednn
