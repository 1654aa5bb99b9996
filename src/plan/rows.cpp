// Splits the global batch over pipelines, micro-batches and replicas (INTERFACES 9).
#include "plan/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace millrace {
namespace {

std::vector<double> pipeline_shares(const Plan& plan) {
  std::vector<double> shares;
  for (const Pipeline& pipeline : plan.pipelines) shares.push_back(pipeline.share);
  return shares;
}

// Part `index` of the interval, whose parts have the given sizes.
RowInterval part(RowInterval whole, std::span<const std::int64_t> sizes, int index) {
  const std::int64_t begin = std::accumulate(sizes.begin(), sizes.begin() + index, whole.begin);
  return {begin, begin + sizes[static_cast<std::size_t>(index)]};
}

}  // namespace

RowInterval intersect(RowInterval a, RowInterval b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

std::vector<std::int64_t> largest_remainder(std::int64_t total, std::span<const double> shares) {
  // A share such as 0.1 + 0.2 is a rounding error away from the whole number that was meant: it must not lose a row.
  constexpr double kRounding = 1e-9;
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::int64_t> parts;
  std::vector<double> remainders;  // in steps of the rounding error, so that equal ones compare equal
  for (const double share : shares) {
    const double exact = static_cast<double>(total) * share / sum;
    const double floor = std::floor(exact + kRounding);
    parts.push_back(static_cast<std::int64_t>(floor));
    remainders.push_back(std::round(std::max(0.0, exact - floor) / kRounding));
  }
  std::vector<std::size_t> by_remainder(shares.size());
  std::iota(by_remainder.begin(), by_remainder.end(), std::size_t{0});
  std::stable_sort(by_remainder.begin(), by_remainder.end(), [&](std::size_t a, std::size_t b) {
    return remainders[a] > remainders[b];
  });
  const std::int64_t left = total - std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  for (std::int64_t i = 0; i < left; ++i) ++parts[by_remainder[static_cast<std::size_t>(i) % parts.size()]];
  return parts;
}

RowInterval pipeline_rows(const Plan& plan, std::int64_t batch, int pipeline) {
  return part({0, batch}, largest_remainder(batch, pipeline_shares(plan)), pipeline);
}

RowInterval micro_batch_rows(const Plan& plan, std::int64_t batch, int pipeline, std::int64_t micro_batch) {
  const RowInterval rows = pipeline_rows(plan, batch, pipeline);
  const std::int64_t count = plan.pipelines[static_cast<std::size_t>(pipeline)].micro_batches;
  const std::int64_t size = rows.size() / count;
  const std::int64_t longer = rows.size() % count;
  const std::int64_t begin = rows.begin + micro_batch * size + std::min(micro_batch, longer);
  return {begin, begin + size + (micro_batch < longer ? 1 : 0)};
}

RowInterval replica_rows(const Plan& plan, std::int64_t batch, StageRef stage, std::int64_t micro_batch, int replica) {
  const RowInterval rows = micro_batch_rows(plan, batch, stage.pipeline, micro_batch);
  const Stage& where =
      plan.pipelines[static_cast<std::size_t>(stage.pipeline)].stages[static_cast<std::size_t>(stage.stage)];
  return part(rows, largest_remainder(rows.size(), where.shares), replica);
}

}  // namespace millrace
