// Runs any stage on any device with the same random borders, to compare devices.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/stage_graph.h"
#include "kernels/device.h"

namespace millrace::kernels::testing {

/// The whole graph, or its operators [first, last), as a stage.
StageGraph whole_stage(const Graph& graph);
StageGraph part_of(const Graph& graph, OpId first, OpId last);

struct StageRunOptions {
  std::int64_t rows = 4;
  std::int64_t valid_rows = 4;
  int slots = 1;  ///< micro-batches; all go forward before the first goes backward
  bool training = true;
  bool split = false;
  std::vector<OpId> recompute{};
  bool plain = false;
};

/// Numbers by tensor name; activations of the last micro-batch, gradients of parameters summed over all.
using NamedValues = std::map<std::string, std::vector<double>>;
struct StageRun {
  NamedValues outputs, input_gradients, parameter_gradients;
};
StageRun run_stage(const StageGraph& stage, Device& device, Precision precision, const StageRunOptions& options);

/// A compiled stage with its borders filled, for tests that call it again and again.
struct PreparedStage {
  PreparedStage(const StageGraph& stage, Device& device, Precision precision, const StageRunOptions& options);
  void forward(int slot);
  void backward(int slot);

  StageGraph stage;
  StageRunOptions options;
  StageParameters parameters;
  std::vector<std::int64_t> samples;
  std::unique_ptr<Executable> executable;
};

}  // namespace millrace::kernels::testing
