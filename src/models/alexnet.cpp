// AlexNet in one column with torchvision's names, without its adaptive pooling: an image of 224 pixels leaves 6 x 6,
// others what remains.
#include <string>

#include "models/families.h"
#include "models/network.h"

namespace millrace::models {

Graph make_alexnet(const ImageOptions& options) {
  struct Convolution {
    std::int64_t out, kernel, stride, padding;
    bool pool;  // 3x3 with stride 2 follows
  };
  constexpr Convolution kConvolutions[] = {
      {64, 11, 4, 2, true}, {192, 5, 1, 2, true}, {384, 3, 1, 1, false}, {256, 3, 1, 1, false}, {256, 3, 1, 1, true}};
  constexpr std::int64_t kHidden = 4096;

  Network net("alexnet");
  TensorId x = net.image_input(options.channels, options.image);
  int index = 0;
  const auto next = [&index] { return "features." + std::to_string(index++); };
  for (const Convolution& c : kConvolutions) {
    const std::string conv = next();
    net.layer(conv);
    x = net.conv(conv, x, c.out, c.kernel, c.stride, c.padding, true);
    x = net.apply(next(), "relu", x);
    if (c.pool) x = net.max_pool(next(), x, 3, 2);
  }
  x = net.apply("flatten", "flatten", x);
  net.layer("classifier.1");
  x = net.dropout("classifier.0", x, options.dropout);
  x = net.linear("classifier.1", x, kHidden);
  x = net.apply("classifier.2", "relu", x);
  net.layer("classifier.4");
  x = net.dropout("classifier.3", x, options.dropout);
  x = net.linear("classifier.4", x, kHidden);
  x = net.apply("classifier.5", "relu", x);
  net.layer("classifier.6");
  return net.finish(net.linear("classifier.6", x, options.classes));
}

}  // namespace millrace::models
