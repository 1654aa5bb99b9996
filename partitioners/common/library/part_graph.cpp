// Gathers edges, then scales weights to whole numbers.
#include "partitioners/common/library/part_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "graph/footprint.h"

namespace millrace::partitioners::library {
namespace {

constexpr double kLargestSum = 1 << 28;  // rounding up and counting both ends stay below 2^29 · 2

std::vector<std::int32_t> scaled(std::span<const double> values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  std::vector<std::int32_t> whole;
  for (const double value : values) {
    whole.push_back(value > 0 ? std::max(1, static_cast<std::int32_t>(std::lround(value / sum * kLargestSum))) : 0);
  }
  return whole;
}

}  // namespace

PartGraph part_graph(const Graph& graph, std::span<const double> seconds, std::int64_t real_bytes) {
  std::vector<std::vector<std::pair<OpId, double>>> rows(static_cast<std::size_t>(graph.size()));
  for (TensorId id = 0; id < static_cast<TensorId>(graph.tensors().size()); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.producer < 0) continue;
    const auto bytes = static_cast<double>(tensor_bytes(tensor, real_bytes).value());
    for (const OpId reader : graph.consumers(id)) {
      rows[static_cast<std::size_t>(tensor.producer)].emplace_back(reader, bytes);
      rows[static_cast<std::size_t>(reader)].emplace_back(tensor.producer, bytes);
    }
  }
  PartGraph result;
  std::vector<double> bytes;
  result.start.push_back(0);
  for (auto& row : rows) {
    std::sort(row.begin(), row.end());
    for (const auto& [end, size] : row) {
      const bool again =
          static_cast<std::size_t>(result.start.back()) < result.ends.size() && result.ends.back() == end;
      if (again) {
        bytes.back() += size;
      } else {
        result.ends.push_back(end);
        bytes.push_back(size);
      }
    }
    result.start.push_back(static_cast<std::int32_t>(result.ends.size()));
  }
  result.edge_weights = scaled(bytes);
  for (std::int32_t& weight : result.edge_weights) weight = std::max(1, weight);  // METIS takes no edges of zero
  result.weights = scaled(seconds);
  if (std::all_of(result.weights.begin(), result.weights.end(), [](std::int32_t weight) { return weight == 0; })) {
    std::fill(result.weights.begin(), result.weights.end(), 1);
  }
  return result;
}

}  // namespace millrace::partitioners::library
