// A stage on the oneDNN device against the reference in double precision.
#pragma once

#include <gmock/gmock.h>

#include "kernels/onednn/onednn_device.h"
#include "kernels/reference/reference_device.h"
#include "tests/kernels/onednn/relative_error.h"
#include "tests/kernels/onednn/stage_run.h"

namespace millrace::kernels::testing {

inline void expect_values_near(const NamedValues& values, const NamedValues& expected, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (const auto& [name, list] : expected) EXPECT_LT(relative_error(values.at(name), list), tolerance) << name;
}

/// Roundings add up over some dozen operators: 1e-5 forward, 1e-4 backward.
inline void expect_stage_as_reference(const StageGraph& stage, const StageRunOptions& options) {
  const StageRun run = run_stage(stage, *make_onednn_device(), Precision::fp32, options);
  const StageRun expected = run_stage(stage, *make_reference_device(), Precision::fp64, options);
  expect_values_near(run.outputs, expected.outputs, 1e-5);
  expect_values_near(run.input_gradients, expected.input_gradients, 1e-4);
  expect_values_near(run.parameter_gradients, expected.parameter_gradients, 1e-4);
}

}  // namespace millrace::kernels::testing
