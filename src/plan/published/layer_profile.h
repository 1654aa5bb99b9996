// What the formulas of PipeDream and DAPPLE read of a graph and of the stages of a plan.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace millrace::plan {

/// Figures by operator, for one mini-batch of the profile. Inputs count nothing, as both planners drop them.
struct LayerFigures {
  std::vector<double> seconds;  ///< forward and backward
  std::vector<double> output_bytes;
  std::vector<double> parameter_bytes;
  std::vector<std::vector<OpId>> readers;  ///< ascending, each once
  std::vector<bool> is_input;
  double profile_batch = 1;  ///< samples of the mini-batch
};

/// \throws InvalidInput  when an operator has no figures of its own.
LayerFigures layer_figures(const Problem& problem);

/// One stage of a pipeline as the formulas see it.
struct StageFigures {
  double seconds = 0;
  double parameter_bytes = 0;
  double activation_bytes = 0;  ///< outputs of all its operators
  double crossing_bytes = 0;    ///< outputs of this and earlier stages that a later one reads, each once
};

std::vector<StageFigures> stage_figures(const Pipeline& pipeline, const LayerFigures& layers);

}  // namespace millrace::plan
