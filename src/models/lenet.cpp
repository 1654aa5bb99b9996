// LeNet with 20 and 50 channels, 431,080 parameters for 28 pixels and 10 classes (INTERFACES 9, model options).
#include "models/families.h"
#include "models/network.h"

namespace millrace::models {

Graph make_lenet(std::int64_t classes, std::int64_t image, std::int64_t channels) {
  Network net("lenet");
  TensorId x = net.image_input(channels, image);
  net.layer("conv1");
  x = net.conv("conv1", x, 20, 5, 1, 0, true);
  x = net.max_pool("pool1", x, 2, 2);
  net.layer("conv2");
  x = net.conv("conv2", x, 50, 5, 1, 0, true);
  x = net.max_pool("pool2", x, 2, 2);
  x = net.apply("flatten", "flatten", x);
  net.layer("fc1");
  x = net.linear("fc1", x, 500);
  x = net.apply("relu", "relu", x);
  net.layer("fc2");
  return net.finish(net.linear("fc2", x, classes));
}

}  // namespace millrace::models
