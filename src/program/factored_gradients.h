// Which buckets keep the factors of a gradient in its place.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "graph/factored_gradient.h"
#include "program/program.h"

namespace millrace {

/// Sets Bucket::factor_rows where a bucket is the weight of one linear layer and nothing else, large, and the batch has
/// so few rows that x and dy of all of them take a small part of it. The layer is not the last one before the loss,
/// which may be one kernel with that; no rank holds the weight twice, none a part of it.
/// \param batch  most rows of the programs that share the storage: equal in all of them.
/// \pre  buckets are updated once an iteration, whole, without waiting for a norm.
void factor_gradients(const Graph& graph, Program& program, std::int64_t batch);

/// Before there is a program: the layers whose weights it will keep so where one rank, or replicas, hold them, since
/// such a weight fills a bucket of `bucket_size` alone. Smaller ones may share theirs, and are not told.
std::vector<OpId> factored_layers(const Graph& graph, std::int64_t batch, Bytes bucket_size);

/// What is kept of the bucket's gradient; no rows where that is the gradient itself.
FactoredShape factored_shape(const Graph& graph, const Bucket& bucket);

}  // namespace millrace
