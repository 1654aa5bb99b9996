// Residual networks with torchvision's names: layer2.3.conv1, layer2.0.downsample.0. Where torchvision calls one relu
// module several times in a block, the operators are relu1, relu2, … in order of use.
#include <string>

#include "models/families.h"
#include "models/network.h"

namespace millrace::models {
namespace {

constexpr std::int64_t kExpansion = 4;

// A convolution without bias, its batch norm.
TensorId conv_norm(Network& net, const std::string& conv, const std::string& norm, TensorId x, std::int64_t out,
                   std::int64_t kernel, std::int64_t stride) {
  x = net.conv(conv, x, out, kernel, stride, kernel / 2, false);
  net.initialize(conv + ".weight", normal(kaiming_fan_out(out, kernel)));
  return net.apply(norm, "batch_norm", x);
}

struct Residual {
  std::string name;
  std::int64_t width;
  std::int64_t stride;
  bool bottleneck;
};

TensorId residual_block(Network& net, const Residual& block, const TensorId x) {
  net.layer(block.name);
  const std::string at = block.name + ".";
  int steps = 0;
  const auto step = [&](TensorId y, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
    const std::string number = std::to_string(++steps);
    return conv_norm(net, at + "conv" + number, at + "bn" + number, y, out, kernel, stride);
  };
  const auto relu = [&](TensorId y, int number) { return net.apply(at + "relu" + std::to_string(number), "relu", y); };

  TensorId y = x;
  if (block.bottleneck) {
    y = relu(step(y, block.width, 1, 1), 1);
    y = relu(step(y, block.width, 3, block.stride), 2);
    y = step(y, block.width * kExpansion, 1, 1);
  } else {
    y = relu(step(y, block.width, 3, block.stride), 1);
    y = step(y, block.width, 3, 1);
  }
  const std::int64_t out = net.dims(y)[0];
  TensorId shortcut = x;
  if (block.stride != 1 || net.dims(x)[0] != out) {
    shortcut = conv_norm(net, at + "downsample.0", at + "downsample.1", x, out, 1, block.stride);
  }
  return relu(net.add(at + "add", y, shortcut), steps);
}

}  // namespace

Graph make_resnet(const std::string& name, const ResnetOptions& options) {
  Network net(name);
  TensorId x = net.image_input(options.channels, options.image);
  net.layer("stem");
  x = options.small_stem ? conv_norm(net, "conv1", "bn1", x, options.width, 3, 1)
                         : conv_norm(net, "conv1", "bn1", x, options.width, 7, 2);
  x = net.apply("relu", "relu", x);
  if (!options.small_stem) x = net.max_pool("maxpool", x, 3, 2, 1);

  std::int64_t width = options.width;
  for (std::size_t layer = 0; layer < options.blocks.size(); ++layer) {
    for (std::int64_t i = 0; i < options.blocks[layer]; ++i) {
      const std::string at = "layer" + std::to_string(layer + 1) + "." + std::to_string(i);
      const std::int64_t stride = layer > 0 && i == 0 ? 2 : 1;
      x = residual_block(net, {at, width, stride, options.bottleneck}, x);
    }
    width *= 2;
  }
  net.layer("fc");
  x = net.apply("avgpool", "global_average_pool", x);
  return net.finish(net.linear("fc", x, options.classes));
}

}  // namespace millrace::models
