// Holds a sharded run against the unsharded one, tensor by tensor.
#pragma once

#include <gtest/gtest.h>

#include "tests/shard/cut_graph.h"
#include "tests/shard/interpreter.h"

namespace millrace::shard::testing {

inline void expect_equal(const std::map<TensorId, Numbers>& wanted, const std::map<TensorId, Numbers>& found,
                         const Graph& graph, const char* what) {
  for (const auto& [tensor, numbers] : wanted) {
    SCOPED_TRACE(std::string(what) + " of " + graph.tensor(tensor).name);
    ASSERT_TRUE(found.count(tensor) == 1);
    ASSERT_EQ(found.at(tensor).size(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_NEAR(found.at(tensor)[i], numbers[i], 1e-9 * (1 + std::abs(numbers[i]))) << "element " << i;
    }
  }
}

/// Outputs, and gradients of every activation and parameter, equal those of one device.
inline void expect_same_as_whole(const CutGraph& cut, const ShardedGraph& sharded) {
  const auto given = sources(cut.graph, cut.tensors.rows());
  const Results wanted = run_whole(cut.graph, cut.tensors.rows(), given);
  const Results found = run_sharded({cut.graph, cut.ops, cut.tensors, cut.mesh, sharded, true}, given);
  expect_equal(wanted.tensors, found.tensors, cut.graph, "output");
  expect_equal(wanted.gradients, found.gradients, cut.graph, "gradient");
}

}  // namespace millrace::shard::testing
