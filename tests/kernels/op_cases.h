// The operator cases that every device is tested with: kinds, attributes and shapes, and how one of them is run.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "graph/stage_graph.h"
#include "kernels/device.h"

namespace millrace::kernels::testing {

/// One operand of a case. Real operands are activations of another stage (a gradient goes back to them), except labels;
/// index operands are graph inputs or labels with values in [0, indices).
struct OpCaseInput {
  Dims dims;
  std::int64_t indices = 0;  ///< > 0: of index type
  bool label = false;
};

struct OpCase {
  std::string name;  ///< letters, digits and '_': the name of the test
  std::string kind;
  Attributes attributes;
  std::vector<OpCaseInput> inputs;
  std::int64_t rows = 1;
  std::int64_t valid_rows = 1;
  bool training = true;
  std::int64_t first_sample = 100;  ///< ids of the rows ascend from here
};

/// Every kind, with the shapes and attributes that take different paths through its kernels.
const std::vector<OpCase>& op_cases();

std::ostream& operator<<(std::ostream& out, const OpCase& op_case);

/// The case as a graph whose middle operator, named "op", is a stage of its own.
struct OpCaseStage {
  Graph graph;
  OpId op = -1;
  StageGraph stage() const;  ///< points into `graph`
};
OpCaseStage make_op_case_stage(const OpCase& op_case);

/// Numbers by operand, in row-major order; indices as numbers too.
using Values = std::vector<std::vector<double>>;

struct OpCaseData {
  Values inputs;
  Values parameters;
  Values buffers;
  Values output_gradients;       ///< of the first output; zero on padding rows
  Values parameter_gradients{};  ///< what the accumulators start from; empty: zeros
};
/// Fixed random numbers of moderate size, exact in fp32.
OpCaseData op_case_data(const OpCase& op_case, const Graph& graph, OpId op);

struct OpCaseResult {
  Values outputs;
  Values input_gradients;  ///< empty for operands without gradient, and all of them without training
  Values parameter_gradients;
  Values buffer_gradients;
};

enum class BackwardCall { whole, split };

/// Compiles the case on `device` and runs one micro-batch forward and, in training, backward: step 3 and row
/// weight 1/8.
OpCaseResult run_op_case(const OpCase& op_case, const OpCaseData& data, Device& device, Precision precision,
                         BackwardCall backward = BackwardCall::whole);

}  // namespace millrace::kernels::testing
