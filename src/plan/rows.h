// Which rows of the global batch a pipeline, a micro-batch and a replica compute.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace millrace {

/// Rows [begin, end) of the global batch.
struct RowInterval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool operator==(const RowInterval&) const = default;
};

RowInterval intersect(RowInterval a, RowInterval b);

/// Splits `total` whole things by `shares`: floors first, the rest by largest remainder, ties to the lower index.
std::vector<std::int64_t> largest_remainder(std::int64_t total, std::span<const double> shares);

/// Rows of pipeline `pipeline`: its share of the batch, by largest remainder.
RowInterval pipeline_rows(const Plan& plan, std::int64_t batch, int pipeline);

/// Rows of one micro-batch: ⌊b/m⌋ each, the first b mod m one more (INTERFACES 9).
RowInterval micro_batch_rows(const Plan& plan, std::int64_t batch, int pipeline, std::int64_t micro_batch);

/// Rows of one replica of a stage within a micro-batch, by the stage's shares; may be empty.
RowInterval replica_rows(const Plan& plan, std::int64_t batch, StageRef stage, std::int64_t micro_batch, int replica);

}  // namespace millrace
