// Networks whose convolutions all use Winograd's algorithm, however fast it is for their sizes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "graph/graph.h"
#include "kernels/onednn/convolution_shape.h"
#include "kernels/onednn/convolution_variants.h"
#include "kernels/variants.h"
#include "models/registry.h"

namespace millrace::testing {

/// Wide enough for blocked layouts, which Winograd's convolutions need.
inline Graph winograd_network() {
  return models::make("resnet",
                      {{"blocks", "[2, 1]"}, {"width", "16"}, {"image", "16"}, {"channels", "3"}, {"classes", "5"}});
}

/// A table that names Winograd for all passes of all convolutions, for up to 1024 rows. Where the processor or a shape
/// has none, the convolution stays direct.
inline std::shared_ptr<kernels::Variants> all_winograd(const Graph& graph) {
  namespace fs = std::filesystem;
  namespace onednn = kernels::onednn;
  const fs::path folder = fs::temp_directory_path() / fmt::format("millrace-winograd-{}", ::getpid());
  auto variants = std::make_shared<kernels::Variants>(folder, "test");
  for (const Operator& op : graph.operators()) {
    if (op.schema->name != "conv2d") continue;
    for (std::int64_t rows = 1; rows <= 1024; rows *= 2) {
      const onednn::ConvolutionShape shape = onednn::convolution_shape(graph, op, rows);
      for (const auto pass : {onednn::Pass::forward, onednn::Pass::backward_data, onednn::Pass::backward_weights}) {
        variants->find_or_measure(onednn::convolution_work(pass, shape), [] {
          return kernels::VariantChoice{"winograd", {}};
        });
      }
    }
  }
  auto told = std::make_shared<kernels::Variants>();  // with no file behind it, and nothing used yet
  told->add(variants->text());
  fs::remove_all(folder);
  return told;
}

}  // namespace millrace::testing
