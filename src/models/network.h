// A network under construction: one method for each kind that the families use, and the layer that operators belong to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph_builder.h"

namespace millrace::models {

/// A sliding window; each pair is height, width.
struct Window {
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> stride{1, 1};
  std::vector<std::int64_t> padding{0, 0};
};

inline constexpr Initializer kZeros{Initializer::Kind::zeros};
inline constexpr double kTransformerDeviation = 0.02;  ///< of the weights of gpt and bert

constexpr Initializer normal(double deviation) { return {Initializer::Kind::normal, deviation}; }

/// Every method adds one operator and returns its output. Windows are squares where they are not given as a Window.
class Network {
 public:
  explicit Network(std::string name) : builder_(std::move(name)) {}

  TensorId image_input(std::int64_t channels, std::int64_t image);
  TensorId feature_input(std::int64_t features);
  TensorId token_input(std::int64_t sequence, std::string name = "input");

  /// Operators added from here on carry this tag (Operator::layer).
  void layer(std::string name) { layer_ = std::move(name); }

  TensorId linear(std::string name, TensorId x, std::int64_t out, bool bias = true);
  TensorId conv(std::string name, TensorId x, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                std::int64_t padding, bool bias);
  TensorId conv(std::string name, TensorId x, std::int64_t out, const Window& window, bool bias);
  TensorId max_pool(std::string name, TensorId x, std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0);
  TensorId avg_pool(std::string name, TensorId x, std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0);
  /// Along the first axis: the channels of images.
  TensorId concat(std::string name, std::vector<TensorId> inputs);
  TensorId add(std::string name, TensorId a, TensorId b);
  /// Adds nothing when the probability is 0.
  TensorId dropout(std::string name, TensorId x, double probability);
  /// Kinds with one input.
  TensorId apply(std::string name, std::string kind, TensorId x, Attributes attributes = {});
  TensorId apply(std::string name, std::string kind, std::vector<TensorId> inputs, Attributes attributes = {},
                 std::vector<TensorId> shared_parameters = {});
  /// A linear whose weight is `weight`.
  TensorId tied_linear(std::string name, TensorId x, TensorId weight, bool bias = false);

  /// Cross-entropy "loss" against "labels", one for each position of the logits; ends the network.
  Graph finish(TensorId logits);

  TensorId tensor(std::string_view name) const { return builder_.find_tensor(name); }
  const Dims& dims(TensorId id) const { return builder_.shape(id).dims; }
  void initialize(std::string_view parameter, Initializer initializer);

 private:
  GraphBuilder builder_;
  std::string layer_;
};

/// Standard deviation of He et al. (arXiv 1502.01852) over the outputs that a weight feeds, for `out` channels.
double kaiming_fan_out(std::int64_t out, std::int64_t kernel);

}  // namespace millrace::models
