// Stage by stage, so that no more than one is in memory at a time.
#include "runtime/forecast.h"

#include <algorithm>

#include "runtime/tree_nodes.h"

namespace millrace::runtime {

RankReport forecast(const Graph& graph, const Programs& programs, const TrainOptions& options,
                    comm::Transport& transport) {
  const int rank = transport.rank();
  const std::unique_ptr<kernels::Device> device = make_device(options);
  RankReport report;
  const Program& first = programs.train.front();
  for (std::size_t s = 0; s < first.stages.size(); ++s) {
    const auto& ranks = first.stages[s].ranks;
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
    StageRunner runner(graph, first, static_cast<std::int32_t>(s), options.precision, options.seed);
    for (const auto* list : {&programs.train, &programs.evaluation}) {
      for (const Program& program : *list) runner.require(program, rank);
    }
    report.weights_bytes += runner.parameters().value_bytes();
    report.gradients_bytes += runner.parameters().gradient_bytes();
    std::size_t nodes = 0;
    for (const Program& program : programs.train) {
      if (options.any_grid) nodes = std::max(nodes, tree_nodes(program, runner.stage(), rank));
    }
    report.gradients_bytes += static_cast<std::int64_t>(nodes) * runner.parameters().gradient_bytes();
    report.optimizer_bytes += Optimizer(graph, runner.parameters(), options.optimizer).state_bytes();
    const StageRunner::Bytes bytes = runner.bytes_needed(*device);
    report.activations_bytes += bytes.activations;
    report.workspace_bytes += bytes.workspace;
  }
  for (const auto* list : {&programs.train, &programs.evaluation}) {
    for (const Program& program : *list) {
      report.buffers_bytes += Exchange(graph, program, rank, options.precision, transport).buffer_bytes();
    }
  }
  return report;
}

}  // namespace millrace::runtime
