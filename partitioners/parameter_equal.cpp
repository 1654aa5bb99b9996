// Baseline of seed 002: cut the topological order so that every stage holds about the same parameter bytes. Every stage
// keeps at least one operator even where trailing operators hold no parameters.
#include "partitioners/parameter_equal.h"

#include <vector>

#include "graph/footprint.h"
#include "partitioners/common/baseline.h"

namespace millrace::partitioners {

plan::PlanSet parameter_equal(const plan::Problem& problem, const config::Values&, plan::Evaluator& evaluate) {
  const Graph& graph = *problem.graph;
  return equal_weight_plans(problem, evaluate, "parameter_equal", [&](const Order& order, const plan::Shape&) {
    std::vector<bool> counted(graph.tensors().size(), false);  // a tied tensor weighs where it is used first
    std::vector<double> bytes;
    for (const OpId op : order) {
      double own = 0;
      for (const TensorId id : graph.op(op).parameters) {
        if (counted[static_cast<std::size_t>(id)]) continue;
        counted[static_cast<std::size_t>(id)] = true;
        own += static_cast<double>(tensor_bytes(graph.tensor(id), problem.sizes.real).value());
      }
      bytes.push_back(own);
    }
    return bytes;
  });
}

}  // namespace millrace::partitioners
