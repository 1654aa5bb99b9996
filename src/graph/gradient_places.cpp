// Gradients in storage order, accumulators of further uses behind them.
#include "graph/gradient_places.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "graph/footprint.h"

namespace millrace {

void add_part_of_factors(GradientPlaces& places) {
  std::int64_t elements = 0;
  for (const GradientPlaces::Place& place : places.places) {
    if (place.factors.rows > 0) elements = std::max(elements, place.factors.part_elements());
  }
  places.part = elements == 0 ? 0 : places.elements;
  places.elements += elements;
}

GradientPlaces gradient_places(const StageGraph& stage, std::span<const TensorId> order,
                               std::span<const FactoredShape> factors) {
  const Graph& graph = *stage.graph;
  GradientPlaces made;
  std::vector<std::int32_t> index_of(graph.tensors().size(), -1);
  for (const TensorId tensor : order) {
    const std::size_t position = made.places.size();
    index_of[static_cast<std::size_t>(tensor)] = static_cast<std::int32_t>(position);
    const FactoredShape kept = factors.empty() ? FactoredShape{} : factors[position];
    made.places.push_back({made.elements, kept, {}});
    made.elements += kept.rows > 0 ? kept.elements() : parameter_elements(graph.tensor(tensor));
  }
  for (const OpId id : stage.ops) {
    const Operator& op = graph.op(id);
    for (const auto* tensors : {&op.parameters, &op.buffers}) {
      for (const TensorId tensor : *tensors) {
        const std::int32_t index = index_of[static_cast<std::size_t>(tensor)];
        if (index < 0) {
          throw std::logic_error(fmt::format("tensor {} is not in the stage's order of parameters", tensor));
        }
        GradientPlaces::Place& used = made.places[static_cast<std::size_t>(index)];
        if (used.uses.empty()) {
          used.uses.emplace_back(id, used.first);
        } else if (used.uses.back().first != id) {
          used.uses.emplace_back(id, made.elements);
          made.elements += parameter_elements(graph.tensor(tensor));
        }
      }
    }
  }
  add_part_of_factors(made);
  return made;
}

}  // namespace millrace
