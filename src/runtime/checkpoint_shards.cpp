// An all-gather of one bucket's state after the other; only the writer keeps it.
#include "runtime/checkpoint_shards.h"

#include <algorithm>
#include <cstring>

#include "program/buckets.h"
#include "runtime/checkpoint_tensors.h"

namespace millrace::runtime {
namespace {

const LocalStage* stage_with(const std::vector<LocalStage>& stages, TensorId tensor) {
  const auto found = std::find_if(stages.begin(), stages.end(), [&](const LocalStage& stage) {
    return stage.runner != nullptr && stage.runner->part_of(tensor) >= 0;
  });
  return found == stages.end() ? nullptr : &*found;
}

}  // namespace

void gather_shards(const Graph& graph, const std::vector<Bucket>& buckets, const std::vector<LocalStage>& stages,
                   comm::Transport& transport, comm::WaitObserver& observer, WholeTensors& whole) {
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const Bucket& bucket = buckets[b];
    if (bucket.owners.size() < 2 || !std::binary_search(bucket.owners.begin(), bucket.owners.end(), transport.rank())) {
      continue;
    }
    const LocalStage& stage = *stage_with(stages, bucket.tensors.front());
    if (!stage.optimizer->is_sharded()) continue;
    kernels::StageParameters& parameters = stage.runner->parameters();
    const std::int64_t size = kernels::real_bytes(parameters.precision());
    const bool wide = parameters.precision() == kernels::Precision::fp64;
    const bool writes = checkpoint_writer(bucket, b) == transport.rank();
    const std::int64_t elements = bucket_elements(graph, bucket);
    std::vector<std::byte> all(static_cast<std::size_t>(elements * size));
    for (const TensorId tensor : bucket.tensors) {
      if (!writes) break;
      const auto* value = static_cast<const std::byte*>(parameters.value(tensor));
      whole[tensor].emplace_back(value, value + parameters.elements(tensor) * size);
    }
    for (std::size_t k = 0; k < stage.optimizer->state_names().size(); ++k) {
      std::byte* next = all.data();
      for (const TensorId tensor : bucket.tensors) {
        const ElementRange kept = stage.optimizer->kept(tensor);
        if (kept.size() > 0) {
          std::memcpy(next + kept.begin * size, stage.optimizer->state(k, tensor),
                      static_cast<std::size_t>(kept.size() * size));
        }
        next += parameters.elements(tensor) * size;
      }
      transport.wait(transport.all_gather(transport.group(bucket.owners), all.data(), elements,
                                          wide ? comm::Element::float64 : comm::Element::float32),
                     &observer);
      next = all.data();
      for (const TensorId tensor : bucket.tensors) {
        std::byte* const end = next + parameters.elements(tensor) * size;
        if (writes) whole[tensor].emplace_back(next, end);
        next = end;
      }
    }
  }
}

}  // namespace millrace::runtime
