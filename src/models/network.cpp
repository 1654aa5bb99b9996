// Operators of networks with the attributes that the families need.
#include "models/network.h"

#include <cmath>

namespace millrace::models {

TensorId Network::image_input(std::int64_t channels, std::int64_t image) {
  return builder_.input("input", {.dims = {channels, image, image}});
}

TensorId Network::feature_input(std::int64_t features) { return builder_.input("input", {.dims = {features}}); }

TensorId Network::token_input(std::int64_t sequence) {
  return builder_.input("input", {.dims = {sequence}, .element = ElementType::index});
}

TensorId Network::add(std::string name, std::string kind, std::vector<TensorId> inputs, Attributes attributes,
                      std::vector<TensorId> shared) {
  return builder_.add({.name = std::move(name),
                       .kind = std::move(kind),
                       .inputs = std::move(inputs),
                       .attributes = std::move(attributes),
                       .layer = layer_,
                       .shared_parameters = std::move(shared)});
}

TensorId Network::linear(std::string name, TensorId x, std::int64_t out, bool bias) {
  return add(std::move(name), "linear", {x}, {{"out_features", out}, {"bias", bias}});
}

TensorId Network::conv(std::string name, TensorId x, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                       std::int64_t padding, bool bias) {
  return add(std::move(name), "conv2d", {x},
             {{"out_channels", out},
              {"kernel", std::vector{kernel, kernel}},
              {"stride", std::vector{stride, stride}},
              {"padding", std::vector{padding, padding}},
              {"bias", bias}});
}

TensorId Network::max_pool(std::string name, TensorId x, std::int64_t kernel, std::int64_t stride,
                           std::int64_t padding) {
  return add(std::move(name), "max_pool", {x},
             {{"kernel", std::vector{kernel, kernel}},
              {"stride", std::vector{stride, stride}},
              {"padding", std::vector{padding, padding}}});
}

TensorId Network::add(std::string name, TensorId a, TensorId b) { return add(std::move(name), "add", {a, b}, {}); }

TensorId Network::dropout(std::string name, TensorId x, double probability) {
  return probability == 0.0 ? x : add(std::move(name), "dropout", {x}, {{"probability", probability}});
}

TensorId Network::apply(std::string name, std::string kind, TensorId x, Attributes attributes) {
  return add(std::move(name), std::move(kind), {x}, std::move(attributes));
}

TensorId Network::tied_linear(std::string name, TensorId x, TensorId weight) {
  return add(std::move(name), "linear", {x}, {{"out_features", dims(weight)[0]}, {"bias", false}}, {weight});
}

Graph Network::finish(TensorId logits) {
  Dims positions = dims(logits);
  positions.pop_back();
  const TensorId labels = builder_.label("labels", {.dims = std::move(positions), .element = ElementType::index});
  add("loss", "cross_entropy", {logits, labels}, {});
  return builder_.build();
}

void Network::initialize(std::string_view parameter, Initializer initializer) {
  builder_.initialize(builder_.find_tensor(parameter), initializer);
}

double kaiming_fan_out(std::int64_t out, std::int64_t kernel) {
  return std::sqrt(2.0 / static_cast<double>(out * kernel * kernel));
}

}  // namespace millrace::models
