// The three operators of the unit.
#include "models/conv_unit.h"

namespace millrace::models {

TensorId conv_unit(Network& net, const std::string& name, TensorId x, std::int64_t out, const Window& window,
                   double deviation) {
  x = net.conv(name + ".conv", x, out, window, false);
  net.initialize(name + ".conv.weight", normal(deviation));
  x = net.apply(name + ".bn", "batch_norm", x, {{"epsilon", 0.001}});
  return net.apply(name + ".relu", "relu", x);
}

}  // namespace millrace::models
