// U-Net with convolutions that keep the size and batch norm, so that nothing is cropped; names as in the PyTorch
// implementation that is used most (inc, down1, …, up4, outc). The loss is over the pixels.
#include <fmt/format.h>

#include <string>

#include "base/errors.h"
#include "models/families.h"
#include "models/network.h"

namespace millrace::models {
namespace {

constexpr std::int64_t kFirstWidth = 64;
constexpr int kDepth = 4;

TensorId double_conv(Network& net, const std::string& name, TensorId x, std::int64_t out) {
  int index = 0;
  const auto next = [&] { return name + ".double_conv." + std::to_string(index++); };
  for (int i = 0; i < 2; ++i) {
    const std::string conv = next();
    x = net.conv(conv, x, out, 3, 1, 1, false);
    net.initialize(conv + ".weight", normal(kaiming_fan_out(out, 3)));
    x = net.apply(next(), "batch_norm", x);
    x = net.apply(next(), "relu", x);
  }
  return x;
}

}  // namespace

Graph make_unet(const ImageOptions& options) {
  constexpr std::int64_t kMultiple = std::int64_t{1} << kDepth;
  if (options.image % kMultiple != 0) {
    throw InvalidInput(
        fmt::format("option 'image' of model unet: found {}, allowed: a multiple of {}, which {} halvings "
                    "leave whole",
                    options.image, kMultiple, kDepth));
  }
  Network net("unet");
  TensorId x = net.image_input(options.channels, options.image);
  net.layer("inc");
  x = double_conv(net, "inc", x, kFirstWidth);
  std::vector<TensorId> skips;
  for (int i = 1; i <= kDepth; ++i) {
    skips.push_back(x);
    const std::string at = "down" + std::to_string(i);
    net.layer(at);
    x = net.max_pool(at + ".maxpool_conv.0", x, 2, 2);
    x = double_conv(net, at + ".maxpool_conv.1", x, kFirstWidth << i);
  }
  for (int i = 1; i <= kDepth; ++i) {
    const std::string at = "up" + std::to_string(i);
    const std::int64_t out = kFirstWidth << (kDepth - i);
    net.layer(at);
    x = net.apply(at + ".up", "conv_transpose2d", x,
                  {{"out_channels", out},
                   {"kernel", std::vector<std::int64_t>{2, 2}},
                   {"stride", std::vector<std::int64_t>{2, 2}}});
    x = net.concat(at + ".concat", {skips.back(), x});
    skips.pop_back();
    x = double_conv(net, at + ".conv", x, out);
  }
  net.layer("outc");
  x = net.conv("outc.conv", x, options.classes, 1, 1, 0, true);
  return net.finish(net.apply("pixels", "transpose", x, {{"permutation", std::vector<std::int64_t>{1, 2, 0}}}));
}

}  // namespace millrace::models
