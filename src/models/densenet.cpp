// DenseNet with torchvision's names and first values: every layer of a block reads the outputs of all before it.
#include <cmath>
#include <string>

#include "models/families.h"
#include "models/network.h"

namespace millrace::models {
namespace {

constexpr std::int64_t kGrowth = 32;
constexpr std::int64_t kBottleneck = 4 * kGrowth;
constexpr std::int64_t kStemWidth = 2 * kGrowth;

// A convolution without bias; He's normal values over its inputs.
TensorId conv(Network& net, const std::string& name, TensorId x, std::int64_t out, std::int64_t kernel,
              std::int64_t stride) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(net.dims(x)[0] * kernel * kernel));
  x = net.conv(name, x, out, kernel, stride, kernel / 2, false);
  net.initialize(name + ".weight", normal(deviation));
  return x;
}

TensorId norm_relu(Network& net, const std::string& at, const std::string& number, TensorId x) {
  x = net.apply(at + "norm" + number, "batch_norm", x);
  return net.apply(at + "relu" + number, "relu", x);
}

TensorId joined(Network& net, const std::string& at, const std::vector<TensorId>& outputs) {
  return outputs.size() == 1 ? outputs.front() : net.concat(at + "concat", outputs);
}

TensorId dense_block(Network& net, const std::string& name, std::int64_t layers, TensorId x) {
  std::vector<TensorId> outputs{x};
  for (std::int64_t i = 1; i <= layers; ++i) {
    const std::string layer = name + ".denselayer" + std::to_string(i);
    net.layer(layer);
    const std::string at = layer + ".";
    x = norm_relu(net, at, "1", joined(net, at, outputs));
    x = conv(net, at + "conv1", x, kBottleneck, 1, 1);
    x = norm_relu(net, at, "2", x);
    outputs.push_back(conv(net, at + "conv2", x, kGrowth, 3, 1));
  }
  return joined(net, name + ".", outputs);
}

// Halves channels and size.
TensorId transition(Network& net, const std::string& name, TensorId x) {
  net.layer(name);
  x = norm_relu(net, name + ".", "", x);
  x = conv(net, name + ".conv", x, net.dims(x)[0] / 2, 1, 1);
  return net.avg_pool(name + ".pool", x, 2, 2);
}

}  // namespace

Graph make_densenet(const std::string& name, const std::vector<std::int64_t>& blocks, const ImageOptions& options) {
  Network net(name);
  const std::string at = "features.";
  TensorId x = net.image_input(options.channels, options.image);
  net.layer("stem");
  x = conv(net, at + "conv0", x, kStemWidth, 7, 2);
  x = norm_relu(net, at, "0", x);
  x = net.max_pool(at + "pool0", x, 3, 2, 1);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    x = dense_block(net, at + "denseblock" + number, blocks[i], x);
    if (i + 1 < blocks.size()) x = transition(net, at + "transition" + number, x);
  }
  net.layer("classifier");
  x = norm_relu(net, at, "5", x);
  x = net.apply("avgpool", "global_average_pool", x);
  x = net.dropout("dropout", x, options.dropout);
  x = net.linear("classifier", x, options.classes);
  net.initialize("classifier.bias", {Initializer::Kind::zeros});
  return net.finish(x);
}

}  // namespace millrace::models
