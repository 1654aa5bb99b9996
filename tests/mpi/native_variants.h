// Networks whose linear layers all multiply bf16 operands as they lie, however slow the processor is at it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "graph/graph.h"
#include "kernels/onednn/bf16_product.h"
#include "kernels/variants.h"

namespace millrace::testing {

/// A table that names the native products for all linear layers, for up to 32768 vectors. Processors without them use
/// copies.
inline std::shared_ptr<kernels::Variants> all_native(const Graph& graph) {
  namespace onednn = kernels::onednn;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("millrace-native-{}", ::getpid());
  kernels::Variants variants(folder, "test");
  for (const Operator& op : graph.operators()) {
    if (op.schema->name != "linear") continue;
    onednn::LinearShape shape{.inputs = graph.tensor(op.inputs[0]).shape.dims.back(),
                              .outputs = graph.tensor(op.outputs[0]).shape.dims.back(),
                              .bias = op.attributes.boolean("bias")};
    for (shape.rows = 1; shape.rows < 32768; shape.rows *= 2) {
      for (const auto pass : {onednn::Pass::forward, onednn::Pass::backward_data, onednn::Pass::backward_weights}) {
        variants.find_or_measure(onednn::bf16_linear_work(pass, shape), [] {
          return kernels::VariantChoice{"native", {}};
        });
      }
    }
  }
  auto told = std::make_shared<kernels::Variants>();  // with no file behind it, and nothing used yet
  told->add(variants.text());
  std::filesystem::remove_all(folder);
  return told;
}

}  // namespace millrace::testing
