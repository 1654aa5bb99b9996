// Scaled dot-product attention of each head: y_i = Σ_j softmax_j(q_i·k_j / √d)·v_j, over j ≤ i when causal.
#include <algorithm>
#include <cmath>

#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"
#include "kernels/reference/sums.h"

namespace millrace::kernels::reference {
namespace {

template <class T>
class Attention : public OpKernel {
 public:
  explicit Attention(const Setup& setup)
      : rows_(setup.rows),
        length_(setup.input_dims()[0]),
        width_(setup.output_dims()[1]),
        heads_(setup.op.attributes.integer("heads")),
        head_width_(width_ / heads_),
        scale_(1 / std::sqrt(static_cast<T>(head_width_))),
        causal_(setup.op.attributes.boolean("causal")),
        training_(setup.training) {}

  /// log Σ_j exp(score_ij) of each query of each head: backward makes the probabilities again from it.
  std::int64_t extra_bytes() const override {
    return training_ ? rows_ * heads_ * length_ * static_cast<std::int64_t>(sizeof(T)) : 0;
  }

  std::int64_t scratch_bytes() const override { return 2 * length_ * static_cast<std::int64_t>(sizeof(T)); }

  void forward(const OpCall& call) override {
    T* probabilities = static_cast<T*>(call.scratch);
    each_query([&](std::int64_t query, std::int64_t qkv, std::int64_t i) {
      const T* x = input<T>(call) + qkv;
      T* y = output<T>(call) + (query / (heads_ * length_) * length_ + i) * width_ + head_of(query) * head_width_;
      const std::int64_t keys = causal_ ? i + 1 : length_;
      for (std::int64_t j = 0; j < keys; ++j) probabilities[j] = score(x, i, j);
      const T most = *std::max_element(probabilities, probabilities + keys);
      for (std::int64_t j = 0; j < keys; ++j) probabilities[j] = std::exp(probabilities[j] - most);
      const T sum = lane_sum<T>(keys, [probabilities](std::int64_t j) { return probabilities[j]; });
      std::fill_n(y, head_width_, T{0});
      for (std::int64_t j = 0; j < keys; ++j) add_scaled(y, probabilities[j] / sum, part(x, j, kValue), head_width_);
      if (training_) static_cast<T*>(call.extra)[query] = most + std::log(sum);
    });
  }

  // With p the probabilities and g = dy_i·v_j: dscore = p·(g − Σ p·g); dv_j = Σ_i p·dy_i.
  void backward_input(const OpCall& call) override {
    T* probabilities = static_cast<T*>(call.scratch);
    T* dots = probabilities + length_;
    std::fill_n(input_gradient<T>(call), rows_ * length_ * 3 * width_, T{0});
    each_query([&](std::int64_t query, std::int64_t qkv, std::int64_t i) {
      const T* x = input<T>(call) + qkv;
      T* dx = input_gradient<T>(call) + qkv;
      const T* dy =
          output_gradient<T>(call) + (query / (heads_ * length_) * length_ + i) * width_ + head_of(query) * head_width_;
      const std::int64_t keys = causal_ ? i + 1 : length_;
      const T log_sum = static_cast<const T*>(call.extra)[query];
      for (std::int64_t j = 0; j < keys; ++j) {
        probabilities[j] = std::exp(score(x, i, j) - log_sum);
        dots[j] = dot(dy, part(x, j, kValue), head_width_);
      }
      const T projection = dot(probabilities, dots, keys);
      for (std::int64_t j = 0; j < keys; ++j) {
        const T slope = probabilities[j] * (dots[j] - projection) * scale_;
        add_scaled(part(dx, i, kQuery), slope, part(x, j, kKey), head_width_);
        add_scaled(part(dx, j, kKey), slope, part(x, i, kQuery), head_width_);
        add_scaled(part(dx, j, kValue), probabilities[j], dy, head_width_);
      }
    });
  }

 private:
  static constexpr std::int64_t kQuery = 0;
  static constexpr std::int64_t kKey = 1;
  static constexpr std::int64_t kValue = 2;

  std::int64_t head_of(std::int64_t query) const { return query / length_ % heads_; }

  /// Features are ordered (heads, 3, d): `of_head` points at a head's features of position 0.
  template <class Pointer>
  Pointer part(Pointer of_head, std::int64_t position, std::int64_t which) const {
    return of_head + position * 3 * width_ + which * head_width_;
  }

  T score(const T* of_head, std::int64_t i, std::int64_t j) const {
    return dot(part(of_head, i, kQuery), part(of_head, j, kKey), head_width_) * scale_;
  }

  /// Calls visit(query, offset of its head's features at position 0, position), query = (row, head, position).
  template <class Visit>
  void each_query(Visit visit) const {
    for (std::int64_t query = 0; query < rows_ * heads_ * length_; ++query) {
      const std::int64_t row = query / (heads_ * length_);
      visit(query, row * length_ * 3 * width_ + head_of(query) * 3 * head_width_, query % length_);
    }
  }

  std::int64_t rows_, length_, width_, heads_, head_width_;
  T scale_;
  bool causal_, training_;
};

}  // namespace

std::unique_ptr<OpKernel> make_attention(const Setup& setup) { return make_in_precision<Attention>(setup); }

}  // namespace millrace::kernels::reference
