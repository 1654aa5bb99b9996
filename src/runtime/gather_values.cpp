// Collects the logical parameters of all stages on rank 0, for comparison and later for checkpoints.
#include <cstring>

#include "base/errors.h"
#include "runtime/part_conversion.h"
#include "runtime/trainer.h"

namespace millrace::runtime {
namespace {

template <class Real>
std::vector<double> widened(const std::vector<std::byte>& bytes) {
  const auto* values = reinterpret_cast<const Real*>(bytes.data());
  return {values, values + bytes.size() / sizeof(Real)};
}

}  // namespace

// What the owners of the bucket hold of the tensor.
Region Trainer::region_of(const Bucket& bucket, TensorId tensor) const {
  const auto& parts = programs_.train.front().stages[static_cast<std::size_t>(bucket.stages.front())].parts;
  return held_region(graph_.tensor(tensor).shape.dims, 0, parts ? parts->parameters.at(tensor) : Holding{},
                     bucket.shard);
}

std::vector<std::vector<double>> Trainer::gather_values() {
  constexpr int kTag = 0;
  comm::Transport& transport = around_.transport;
  const int rank = transport.rank();
  const std::int64_t element = kernels::real_bytes(options_.precision);
  std::vector<std::vector<double>> values(rank == 0 ? graph_.tensors().size() : 0);
  for (const Bucket& bucket : programs_.train.front().buckets) {
    const int owner = bucket.owners.front();
    for (const TensorId tensor : bucket.tensors) {
      const Region part = region_of(bucket, tensor);
      std::vector<std::byte> bytes(static_cast<std::size_t>(part.elements() * element));
      for (const auto& runner : stage_runners_) {
        const TensorId here = runner->part_of(tensor);
        if (rank == owner && here >= 0) std::memcpy(bytes.data(), runner->parameters().value(here), bytes.size());
      }
      if (rank == owner && rank != 0) transport.wait(transport.send(bytes, 0, kTag));
      if (rank == 0 && rank != owner) transport.wait(transport.receive(bytes, owner, kTag));
      if (rank != 0) continue;
      const std::vector<double> own =
          options_.precision == kernels::Precision::fp64 ? widened<double>(bytes) : widened<float>(bytes);
      std::vector<double>& all = values[static_cast<std::size_t>(tensor)];
      all.resize(static_cast<std::size_t>(graph_.tensor(tensor).shape.elements_per_sample()));
      unpack(part, reinterpret_cast<const std::byte*>(own.data()), sizeof(double),
             reinterpret_cast<std::byte*>(all.data()));
    }
  }
  return values;
}

}  // namespace millrace::runtime
