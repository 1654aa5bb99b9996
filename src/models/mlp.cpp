// Multi-layer perceptron: linear0, relu0, linear1, …
#include <string>

#include "models/families.h"
#include "models/network.h"

namespace millrace::models {

Graph make_mlp(std::int64_t inputs, const std::vector<std::int64_t>& hidden, std::int64_t classes) {
  Network net("mlp");
  TensorId x = net.feature_input(inputs);
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const std::string number = std::to_string(i);
    net.layer("linear" + number);
    x = net.linear("linear" + number, x, hidden[i]);
    x = net.apply("relu" + number, "relu", x);
  }
  const std::string last = "linear" + std::to_string(hidden.size());
  net.layer(last);
  return net.finish(net.linear(last, x, classes));
}

}  // namespace millrace::models
