// Rows against the size of the weight, bucket by bucket.
#include "program/factored_gradients.h"

#include <algorithm>
#include <set>

#include "graph/footprint.h"

namespace millrace {
namespace {

constexpr std::int64_t kLeastElements = std::int64_t{1} << 20;  // below there is little to be saved
constexpr std::int64_t kMostRows = 64;                          // more are a product that is not bound by memory
constexpr std::int64_t kLeastSaving = 16;                       // times fewer numbers

FactoredShape shape_of(const Graph& graph, TensorId weight) {
  const std::vector<std::int64_t>& dims = graph.tensor(weight).shape.dims;
  return {.rows = 0, .inputs = dims[1], .outputs = dims[0]};
}

bool is_in_one_place(const Program& program, const Bucket& bucket) {
  std::set<int> ranks;
  for (const std::int32_t s : bucket.stages) {
    const ProgramStage& stage = program.stages[static_cast<std::size_t>(s)];
    if (stage.tensor_parallel > 1) return false;
    for (const int rank : stage.ranks) {
      if (!ranks.insert(rank).second) return false;
    }
  }
  return true;
}

// The rows of a batch; 0 where the tensor is not the weight of one linear layer, or its gradient is better kept whole.
std::int64_t rows_of_factors(const Graph& graph, TensorId weight, std::int64_t batch) {
  const auto users = graph.consumers(weight);
  if (users.size() != 1 || graph.op(users.front()).schema->name != "linear") return 0;
  const Operator& op = graph.op(users.front());
  if (weight != op.parameters.front()) return 0;
  const auto readers = graph.consumers(op.outputs[0]);
  if (std::find(readers.begin(), readers.end(), graph.loss()) != readers.end()) return 0;
  FactoredShape shape = shape_of(graph, weight);
  const std::int64_t elements = parameter_elements(graph.tensor(weight));
  shape.rows = batch * (graph.tensor(op.outputs[0]).shape.elements_per_sample() / shape.outputs);
  const bool is_worth_it =
      elements >= kLeastElements && shape.rows <= kMostRows && shape.elements() * kLeastSaving <= elements;
  return is_worth_it ? shape.rows : 0;
}

}  // namespace

void factor_gradients(const Graph& graph, Program& program, std::int64_t batch) {
  for (Bucket& bucket : program.buckets) {
    if (bucket.tensors.size() > 1 || !is_in_one_place(program, bucket)) continue;
    bucket.factor_rows = rows_of_factors(graph, bucket.tensors.front(), batch);
  }
}

std::vector<OpId> factored_layers(const Graph& graph, std::int64_t batch, Bytes bucket_size) {
  std::vector<OpId> layers;
  for (OpId id = 0; id < graph.size(); ++id) {
    const std::vector<TensorId>& parameters = graph.op(id).parameters;
    if (parameters.empty() || tensor_bytes(graph.tensor(parameters.front()), 4) < bucket_size) continue;
    if (rows_of_factors(graph, parameters.front(), batch) > 0) layers.push_back(id);
  }
  return layers;
}

FactoredShape factored_shape(const Graph& graph, const Bucket& bucket) {
  if (bucket.factor_rows == 0) return {};
  FactoredShape shape = shape_of(graph, bucket.tensors.front());
  shape.rows = bucket.factor_rows;
  return shape;
}

}  // namespace millrace
