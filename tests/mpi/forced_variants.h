// Tables of variants that name one for all work of a network, however fast it is for its sizes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "graph/graph.h"
#include "kernels/onednn/convolution_shape.h"
#include "kernels/onednn/convolution_variants.h"
#include "kernels/onednn/matrix_product.h"
#include "kernels/variants.h"
#include "models/registry.h"

namespace millrace::testing {

/// Wide enough for blocked layouts, which Winograd's convolutions need.
inline Graph winograd_network() {
  return models::make("resnet",
                      {{"blocks", "[2, 1]"}, {"width", "16"}, {"image", "16"}, {"channels", "3"}, {"classes", "5"}});
}

/// A table that names `convolution` for all passes of all convolutions, and `product` for all products of all linear
/// layers, for up to 1024 rows. Where the processor or a shape
/// does not offer it, the standard one stays.
inline std::shared_ptr<kernels::Variants> all_of(const Graph& graph, const std::string& convolution,
                                                 const std::string& product) {
  namespace fs = std::filesystem;
  namespace onednn = kernels::onednn;
  const fs::path folder = fs::temp_directory_path() / fmt::format("millrace-variants-{}", ::getpid());
  auto variants = std::make_shared<kernels::Variants>(folder, "test");
  const auto name = [&](const std::string& work, const std::string& variant) {
    variants->find_or_measure(work, [&] { return kernels::VariantChoice{variant, {}}; });
  };
  for (const Operator& op : graph.operators()) {
    for (const auto pass : {onednn::Pass::forward, onednn::Pass::backward_data, onednn::Pass::backward_weights}) {
      for (std::int64_t rows = 1; rows <= 1024; rows *= 2) {
        if (op.schema->name == "conv2d") {
          name(onednn::convolution_work(pass, onednn::convolution_shape(graph, op, rows)), convolution);
        } else if (op.schema->name == "linear") {
          const Dims& from = graph.tensor(op.inputs.front()).shape.dims;
          const Dims& to = graph.tensor(op.outputs.front()).shape.dims;
          for (const bool bias : {false, true}) {
            name(onednn::linear_work(pass, {rows, from.back(), to.back(), bias}), product);
          }
        }
      }
    }
  }
  auto told = std::make_shared<kernels::Variants>();  // with no file behind it, and nothing used yet
  told->add(variants->text());
  fs::remove_all(folder);
  return told;
}

/// The same with Winograd's algorithm, and standard products.
inline std::shared_ptr<kernels::Variants> all_winograd(const Graph& graph) {
  return all_of(graph, "winograd", "sgemm");
}

}  // namespace millrace::testing
