// What `import --summary` tells, counted by hand.
#include "import/summary.h"

#include <gtest/gtest.h>

#include "import/import.h"
#include "tests/import/samples.h"

namespace millrace::import {
namespace {

Summary summary_of(const samples::Sample& sample) { return summarize(load_text(sample.text, sample.file).graph); }

TEST(Summary, CountsAndSums) {
  const Summary summary = summary_of(samples::graph_yaml());
  EXPECT_EQ(summary.operators, 5);
  EXPECT_EQ(summary.edges, 5);
  EXPECT_EQ(summary.tensors, 9);  // outputs, two weights of bytes, weight and bias
  EXPECT_EQ(summary.parameters, 5 * (1 << 20) + 2621440 + 10);
  EXPECT_EQ(summary.parameter_bytes, 20 * (1 << 20) + 4 * (2621440 + 10));
  EXPECT_DOUBLE_EQ(summary.forward_s, 0.011);
  EXPECT_DOUBLE_EQ(summary.backward_s, 0.021);
  EXPECT_EQ(summary.flops, 2.0 * 2621440);
  EXPECT_EQ(summary.depth, 4);
  EXPECT_EQ(summary.width, 2);
  EXPECT_EQ(summary.without_kernels, "in");
  EXPECT_EQ(summary.machine, "");
}

TEST(Summary, TellsTheMachineOfTheFile) {
  EXPECT_EQ(summary_of(samples::split()).machine, "2 accelerators of 1000 B, 1 CPU cores");
  EXPECT_EQ(summary_of(samples::piper()).machine, "4 devices of 7.8 KiB at 25.5 B/s, 12 micro-batches");
  EXPECT_EQ(summary_of(samples::profile()).machine, "");
}

}  // namespace
}  // namespace millrace::import
