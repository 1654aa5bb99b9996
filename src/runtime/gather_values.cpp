// Collects the logical parameters of all stages on rank 0, for comparison and later for checkpoints.
#include <algorithm>

#include "base/errors.h"
#include "runtime/trainer.h"

namespace millrace::runtime {
namespace {

template <class Real>
std::vector<double> widened(const std::vector<std::byte>& bytes) {
  const auto* values = reinterpret_cast<const Real*>(bytes.data());
  return {values, values + bytes.size() / sizeof(Real)};
}

}  // namespace

std::vector<std::vector<double>> Trainer::gather_values() {
  constexpr int kTag = 0;
  comm::Transport& transport = around_.transport;
  const int rank = transport.rank();
  const std::int64_t element = kernels::real_bytes(options_.precision);
  std::vector<std::vector<double>> values(rank == 0 ? graph_.tensors().size() : 0);
  for (const Bucket& bucket : programs_.train.front().buckets) {
    const int owner = bucket.owners.front();
    for (const TensorId tensor : bucket.tensors) {
      const std::int64_t size = graph_.tensor(tensor).shape.elements_per_sample() * element;
      std::vector<std::byte> bytes(static_cast<std::size_t>(size));
      for (const auto& runner : stage_runners_) {
        const auto& known = runner->graph().parameters;
        const auto& buffers = runner->graph().buffers;
        const bool here = std::binary_search(known.begin(), known.end(), tensor) ||
                          std::binary_search(buffers.begin(), buffers.end(), tensor);
        if (rank == owner && here)
          std::copy_n(static_cast<const std::byte*>(runner->parameters().value(tensor)), size, bytes.begin());
      }
      if (rank == owner && rank != 0) transport.wait(transport.send(bytes, 0, kTag));
      if (rank == 0 && rank != owner) transport.wait(transport.receive(bytes, owner, kTag));
      if (rank != 0) continue;
      values[static_cast<std::size_t>(tensor)] =
          options_.precision == kernels::Precision::fp64 ? widened<double>(bytes) : widened<float>(bytes);
    }
  }
  return values;
}

}  // namespace millrace::runtime
