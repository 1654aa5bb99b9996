// Asks the device without slots, and everything else for its own bytes.
#include "runtime/forecast.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/local_edges.h"
#include "runtime/tree_nodes.h"

namespace millrace::runtime {

RankReport forecast(const Graph& graph, const Programs& programs, const TrainOptions& options,
                    comm::Transport& transport, kernels::Device* given) {
  const int rank = transport.rank();
  const std::unique_ptr<kernels::Device> own = given == nullptr ? make_device(options) : nullptr;
  kernels::Device& device = given == nullptr ? *own : *given;
  RankReport report;
  const Program& first = programs.train.front();
  std::vector<std::unique_ptr<StageRunner>> runners;
  std::vector<StageRunner*> by_stage(first.stages.size(), nullptr);
  for (std::size_t s = 0; s < first.stages.size(); ++s) {
    const auto& ranks = first.stages[s].ranks;
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
    runners.push_back(std::make_unique<StageRunner>(graph, first, static_cast<std::int32_t>(s), options.precision,
                                                    options.seed, device.storage(),
                                                    PartGroup::make(first.stages[s], transport, nullptr)));
    StageRunner& runner = *runners.back();
    by_stage[s] = &runner;
    for (const auto* list : {&programs.train, &programs.evaluation}) {
      for (const Program& program : *list) runner.require(program, rank);
    }
    report.weights_bytes += (1 + runner.copies()) * runner.parameters().value_bytes();
    report.gradients_bytes += runner.parameters().gradient_bytes();
    std::size_t nodes = 0;
    for (const Program& program : programs.train) {
      if (options.any_grid) nodes = std::max(nodes, tree_nodes(program, runner.stage(), rank));
    }
    report.gradients_bytes += static_cast<std::int64_t>(nodes) * runner.parameters().gradient_bytes();
    report.optimizer_bytes += (first.post_validation ? 2 : 1) *
                              Optimizer(runner.part_graph(), runner.parameters(), options.optimizer).state_bytes();
    const StageRunner::Bytes bytes = runner.bytes_needed(device);
    report.activations_bytes += bytes.activations;
    report.workspace_bytes += bytes.workspace;
  }
  for (const auto* list : {&programs.train, &programs.evaluation}) {
    for (const Program& program : *list) {
      report.buffers_bytes +=
          Exchange(graph, program, rank, options.precision, transport, device.storage()).buffer_bytes() +
          LocalEdges(graph, program, by_stage, options.precision, device.storage()).buffer_bytes();
    }
  }
  return report;
}

}  // namespace millrace::runtime
