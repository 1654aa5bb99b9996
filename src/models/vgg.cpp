// VGG (arXiv 1409.1556) with torchvision's names and initial values, without its adaptive pooling: an image of 224
// pixels leaves 7 x 7 after five pools, others what remains.
#include <string>

#include "models/families.h"
#include "models/network.h"

namespace millrace::models {
namespace {

constexpr std::int64_t kHidden = 4096;

TensorId classifier_linear(Network& net, const std::string& name, TensorId x, std::int64_t out) {
  net.layer(name);
  const TensorId y = net.linear(name, x, out);
  net.initialize(name + ".weight", normal(0.01));
  net.initialize(name + ".bias", kZeros);
  return y;
}

}  // namespace

Graph make_vgg(const std::string& name, const VggOptions& options) {
  constexpr std::int64_t kWidths[] = {64, 128, 256, 512, 512};
  Network net(name);
  TensorId x = net.image_input(options.channels, options.image);
  int index = 0;
  const auto next = [&index] { return "features." + std::to_string(index++); };
  for (std::size_t block = 0; block < options.convolutions.size(); ++block) {
    for (std::int64_t i = 0; i < options.convolutions[block]; ++i) {
      const std::string conv = next();
      net.layer(conv);
      x = net.conv(conv, x, kWidths[block], 3, 1, 1, true);
      net.initialize(conv + ".weight", normal(kaiming_fan_out(kWidths[block], 3)));
      net.initialize(conv + ".bias", kZeros);
      x = net.apply(next(), "relu", x);
    }
    x = net.max_pool(next(), x, 2, 2);
  }
  x = net.apply("flatten", "flatten", x);
  x = classifier_linear(net, "classifier.0", x, kHidden);
  x = net.apply("classifier.1", "relu", x);
  x = net.dropout("classifier.2", x, options.dropout);
  x = classifier_linear(net, "classifier.3", x, kHidden);
  x = net.apply("classifier.4", "relu", x);
  x = net.dropout("classifier.5", x, options.dropout);
  return net.finish(classifier_linear(net, "classifier.6", x, options.classes));
}

}  // namespace millrace::models
