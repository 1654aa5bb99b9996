// Operators of networks with the attributes that the families need.
#include "models/network.h"

#include <cmath>

namespace millrace::models {
namespace {

Window square(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return {.kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {padding, padding}};
}

Attributes window_attributes(const Window& window) {
  return {{"kernel", window.kernel}, {"stride", window.stride}, {"padding", window.padding}};
}

}  // namespace

TensorId Network::image_input(std::int64_t channels, std::int64_t image) {
  return builder_.input("input", {.dims = {channels, image, image}});
}

TensorId Network::feature_input(std::int64_t features) { return builder_.input("input", {.dims = {features}}); }

TensorId Network::token_input(std::int64_t sequence, std::string name) {
  return builder_.input(std::move(name), {.dims = {sequence}, .element = ElementType::index});
}

TensorId Network::apply(std::string name, std::string kind, std::vector<TensorId> inputs, Attributes attributes,
                        std::vector<TensorId> shared_parameters) {
  return builder_.add({.name = std::move(name),
                       .kind = std::move(kind),
                       .inputs = std::move(inputs),
                       .attributes = std::move(attributes),
                       .layer = layer_,
                       .shared_parameters = std::move(shared_parameters)});
}

TensorId Network::apply(std::string name, std::string kind, TensorId x, Attributes attributes) {
  return apply(std::move(name), std::move(kind), std::vector{x}, std::move(attributes));
}

TensorId Network::linear(std::string name, TensorId x, std::int64_t out, bool bias) {
  return apply(std::move(name), "linear", x, {{"out_features", out}, {"bias", bias}});
}

TensorId Network::conv(std::string name, TensorId x, std::int64_t out, const Window& window, bool bias) {
  Attributes attributes = window_attributes(window);
  attributes.set("out_channels", out);
  attributes.set("bias", bias);
  return apply(std::move(name), "conv2d", x, std::move(attributes));
}

TensorId Network::conv(std::string name, TensorId x, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                       std::int64_t padding, bool bias) {
  return conv(std::move(name), x, out, square(kernel, stride, padding), bias);
}

TensorId Network::max_pool(std::string name, TensorId x, std::int64_t kernel, std::int64_t stride,
                           std::int64_t padding) {
  return apply(std::move(name), "max_pool", x, window_attributes(square(kernel, stride, padding)));
}

TensorId Network::avg_pool(std::string name, TensorId x, std::int64_t kernel, std::int64_t stride,
                           std::int64_t padding) {
  return apply(std::move(name), "avg_pool", x, window_attributes(square(kernel, stride, padding)));
}

TensorId Network::concat(std::string name, std::vector<TensorId> inputs) {
  return apply(std::move(name), "concat", std::move(inputs), {{"axis", 0}});
}

TensorId Network::add(std::string name, TensorId a, TensorId b) {
  return apply(std::move(name), "add", std::vector{a, b});
}

TensorId Network::dropout(std::string name, TensorId x, double probability) {
  return probability == 0.0 ? x : apply(std::move(name), "dropout", x, {{"probability", probability}});
}

TensorId Network::tied_linear(std::string name, TensorId x, TensorId weight, bool bias) {
  return apply(std::move(name), "linear", std::vector{x}, {{"out_features", dims(weight)[0]}, {"bias", bias}},
               {weight});
}

Graph Network::finish(TensorId logits) {
  Dims positions = dims(logits);
  positions.pop_back();
  const TensorId labels = builder_.label("labels", {.dims = std::move(positions), .element = ElementType::index});
  apply("loss", "cross_entropy", std::vector{logits, labels});
  return builder_.build();
}

void Network::initialize(std::string_view parameter, Initializer initializer) {
  builder_.initialize(builder_.find_tensor(parameter), initializer);
}

double kaiming_fan_out(std::int64_t out, std::int64_t kernel) {
  return std::sqrt(2.0 / static_cast<double>(out * kernel * kernel));
}

}  // namespace millrace::models
