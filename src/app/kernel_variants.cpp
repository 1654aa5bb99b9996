// Opens the table of the machine, and tells it to the other ranks.
#include "app/kernel_variants.h"

#include <algorithm>

#include <fmt/format.h>

#include "kernels/onednn/onednn_device.h"
#include "probe/processor.h"
#include "runtime/threads.h"

namespace millrace::app {

std::shared_ptr<kernels::Variants> kept_variants(int threads) {
  const auto folder = kernels::cache_folder();
  if (!folder) return std::make_shared<kernels::Variants>();
  return std::make_shared<kernels::Variants>(
      *folder, fmt::format("{}, {} threads, {}", probe::processor_name(), threads, kernels::onednn_name()));
}

void agree_on_variants(const Session& session, const runtime::Programs& programs, const comm::World& world) {
  const auto& operators = session.graph.operators();
  const bool none = std::none_of(operators.begin(), operators.end(), [](const Operator& op) {
    return op.schema->name == "conv2d" || op.schema->name == "linear";
  });
  if (world.size() == 1 || none || session.cluster.emulated()) return;
  kernels::Variants& variants = *session.experiment.train.variants;
  const std::string known = world.on_root_then_all([&] {
    runtime::use_threads(session.threads);
    runtime::forecast_all(session.graph, programs, session.experiment.train, nullptr);  // compiles every stage
    return variants.text();
  });
  if (!world.root()) variants.add(known);
}

}  // namespace millrace::app
