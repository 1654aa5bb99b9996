// The small networks of the equality grids.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "models/registry.h"

namespace millrace::testing {

inline Graph small_network(const std::string& name) {
  if (name == "mlp") return models::make("mlp", {{"inputs", "12"}, {"hidden", "[16, 16, 16]"}, {"classes", "5"}});
  if (name == "lenet") return models::make("lenet", {{"image", "16"}});
  if (name == "resnet") {
    return models::make("resnet",
                        {{"blocks", "[1, 1]"}, {"width", "4"}, {"image", "8"}, {"channels", "1"}, {"classes", "5"}});
  }
  return models::make("gpt",
                      {{"layers", "2"}, {"width", "16"}, {"heads", "2"}, {"sequence", "6"}, {"vocabulary", "11"}});
}

inline const std::vector<std::string>& small_networks() {
  static const std::vector<std::string> names{"mlp", "lenet", "resnet", "gpt"};
  return names;
}

}  // namespace millrace::testing
