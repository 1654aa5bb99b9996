// GoogLeNet with torchvision's names and first values, without its auxiliary classifiers (a graph has one loss).
// torchvision's pools round sizes up; here they are padded, which gives the same sizes for even ones.
#include <string>

#include "models/conv_unit.h"
#include "models/families.h"

namespace millrace::models {
namespace {

constexpr double kGoogLeNetDeviation = 0.01;

// Channels of the four branches of an inception block.
struct Branches {
  const char* name;
  std::int64_t one, reduce3, three, reduce5, five, pool;
};

TensorId inception(Network& net, const Branches& block, TensorId x) {
  const std::string at = block.name;
  const Window one{.kernel = {1, 1}};
  const Window three{.kernel = {3, 3}, .padding = {1, 1}};
  const auto unit = [&](const std::string& name, TensorId y, std::int64_t out, const Window& window) {
    return conv_unit(net, at + "." + name, y, out, window, kGoogLeNetDeviation);
  };
  net.layer(at);
  const TensorId a = unit("branch1", x, block.one, one);
  const TensorId b = unit("branch2.1", unit("branch2.0", x, block.reduce3, one), block.three, three);
  const TensorId c = unit("branch3.1", unit("branch3.0", x, block.reduce5, one), block.five, three);
  const TensorId d = unit("branch4.1", net.max_pool(at + ".branch4.0", x, 3, 1, 1), block.pool, one);
  return net.concat(at + ".concat", {a, b, c, d});
}

}  // namespace

Graph make_googlenet(const ImageOptions& options) {
  Network net("googlenet");
  const auto blocks = [&net](TensorId x, std::initializer_list<Branches> list) {
    for (const Branches& block : list) x = inception(net, block, x);
    return x;
  };
  TensorId x = net.image_input(options.channels, options.image);
  net.layer("conv1");
  x = conv_unit(net, "conv1", x, 64, {.kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}}, kGoogLeNetDeviation);
  x = net.max_pool("maxpool1", x, 3, 2, 1);
  net.layer("conv2");
  x = conv_unit(net, "conv2", x, 64, {.kernel = {1, 1}}, kGoogLeNetDeviation);
  net.layer("conv3");
  x = conv_unit(net, "conv3", x, 192, {.kernel = {3, 3}, .padding = {1, 1}}, kGoogLeNetDeviation);
  x = net.max_pool("maxpool2", x, 3, 2, 1);
  x = blocks(x, {{"inception3a", 64, 96, 128, 16, 32, 32}, {"inception3b", 128, 128, 192, 32, 96, 64}});
  x = net.max_pool("maxpool3", x, 3, 2, 1);
  x = blocks(x, {{"inception4a", 192, 96, 208, 16, 48, 64},
                 {"inception4b", 160, 112, 224, 24, 64, 64},
                 {"inception4c", 128, 128, 256, 24, 64, 64},
                 {"inception4d", 112, 144, 288, 32, 64, 64},
                 {"inception4e", 256, 160, 320, 32, 128, 128}});
  x = net.max_pool("maxpool4", x, 2, 2);
  x = blocks(x, {{"inception5a", 256, 160, 320, 32, 128, 128}, {"inception5b", 384, 192, 384, 48, 128, 128}});
  net.layer("fc");
  x = net.apply("avgpool", "global_average_pool", x);
  x = net.dropout("dropout", x, options.dropout);
  x = net.linear("fc", x, options.classes);
  net.initialize("fc.weight", normal(kGoogLeNetDeviation));
  return net.finish(x);
}

}  // namespace millrace::models
