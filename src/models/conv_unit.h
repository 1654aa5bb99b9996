// The unit of the Inception family: convolution, batch norm, ReLU, with torchvision's names.
#pragma once

#include <string>

#include "models/network.h"

namespace millrace::models {

/// "NAME.conv" without bias, "NAME.bn", "NAME.relu". \param deviation  of the weight's normal first values
TensorId conv_unit(Network& net, const std::string& name, TensorId x, std::int64_t out, const Window& window,
                   double deviation);

}  // namespace millrace::models
