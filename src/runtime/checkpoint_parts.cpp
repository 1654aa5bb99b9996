// An all-gather of one tensor after the other; only the writer keeps it.
#include "runtime/checkpoint_parts.h"

#include <algorithm>

#include "runtime/checkpoint_tensors.h"
#include "runtime/part_conversion.h"

namespace millrace::runtime {
namespace {

std::vector<std::vector<std::byte>> gather(const Graph& graph, const LocalStage& stage, TensorId tensor) {
  const Tensor& whole = graph.tensor(tensor);
  kernels::StageParameters& parameters = stage.runner->parameters();
  const std::int64_t size = kernels::real_bytes(parameters.precision());
  const TensorId part = stage.runner->part_of(tensor);
  std::vector<const void*> held{parameters.value(part)};
  const std::size_t states = whole.role == Role::buffer ? 0 : stage.optimizer->state_names().size();
  for (std::size_t k = 0; k < states; ++k) held.push_back(stage.optimizer->state(k, part));
  PartConversion conversion(whole.shape.dims, 0, stage.runner->holding(tensor), {}, size, *stage.runner->group());
  std::vector<std::vector<std::byte>> gathered;
  for (const void* from : held) {
    gathered.emplace_back(static_cast<std::size_t>(whole.shape.elements_per_sample() * size));
    conversion.run(from, gathered.back().data());
  }
  return gathered;
}

}  // namespace

WholeTensors gather_parts(const Graph& graph, const std::vector<Bucket>& buckets, const std::vector<LocalStage>& stages,
                          int rank) {
  std::vector<TensorId> own = tensors_of_writer(buckets, rank);
  std::sort(own.begin(), own.end());
  WholeTensors all;
  for (const LocalStage& stage : stages) {
    if (stage.runner == nullptr || stage.runner->group() == nullptr) continue;
    for (const TensorId tensor : stage.runner->parameter_order()) {
      if (stage.runner->holding(tensor).kind == Holding::Kind::whole) continue;
      auto gathered = gather(graph, stage, tensor);
      if (std::binary_search(own.begin(), own.end(), tensor)) all[tensor] = std::move(gathered);
    }
  }
  return all;
}

}  // namespace millrace::runtime
