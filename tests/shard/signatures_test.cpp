// Every legal signature of every operator kind gives what one device gives, forward and backward (METHODS 7).
#include <gtest/gtest.h>

#include <set>

#include <fmt/format.h>

#include "graph/graph_builder.h"
#include "tests/kernels/op_cases.h"
#include "tests/shard/expect_equal.h"

namespace millrace::shard {
namespace {

using kernels::testing::OpCase;
using testing::CutGraph;

constexpr std::int64_t kRows = 5;  // uneven on 2 and 4

/// The operator between activations and a loss, so that gradients come and go.
Graph around(const OpCase& one) {
  GraphBuilder builder(one.name);
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    const auto& described = one.inputs[i];
    const std::string name = "in" + std::to_string(i);
    const TensorShape shape{described.dims, described.indices > 0 ? ElementType::index : ElementType::real, true};
    if (described.label) {
      inputs.push_back(builder.label(name, shape));
    } else if (described.indices > 0) {
      inputs.push_back(builder.input(name, shape));
    } else {
      inputs.push_back(builder.add({"source" + std::to_string(i), "gelu", {builder.input(name, shape)}}));
    }
  }
  const TensorId output = builder.add({"op", one.kind, inputs, one.attributes});
  if (!op_schema(one.kind).is_loss) {
    const TensorId target = builder.label("target", builder.shape(output));
    builder.add({"loss", "mean_squared_error", {output, target}});
  }
  return builder.build();
}

class EverySignature : public ::testing::TestWithParam<OpCase> {};

std::vector<std::vector<double>> ratios(int devices) {
  return devices == 2 ? std::vector<std::vector<double>>{{}, {3, 1}}
                      : std::vector<std::vector<double>>{{}, {4, 1, 2, 3}};
}

TEST_P(EverySignature, EqualsOneDevice) {
  const Graph graph = around(GetParam());
  const OpId op = graph.find_op("op");
  int tried = 0;
  for (const int devices : {2, 4}) {
    for (const std::vector<double>& weights : ratios(devices)) {
      CutGraph cut(graph, kRows, {{"axis", devices}});
      const int ratio = cut.mesh.add_ratio(weights);
      for (Use use : cut.ops.uses(op)) {
        use.ratio = static_cast<std::int16_t>(ratio);
        if (!cut.fits(op, {use})) continue;
        SCOPED_TRACE(fmt::format("{} devices, ratio {}, signature kind {}, letter {}, operand {}", devices, ratio,
                                 static_cast<int>(use.kind), static_cast<int>(use.letter), use.operand));
        Decision decision = cut.whole();
        decision.uses[static_cast<std::size_t>(op)][0] = use;
        const ShardedGraph sharded = cut.expand(decision, {.synchronised_batch_norm = true});
        expect_same_as_whole(cut, sharded);
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 3) << "the whole on each mesh, and at least one split";
}

std::vector<OpCase> training_cases() {
  std::vector<OpCase> cases;
  for (OpCase one : kernels::testing::op_cases()) {
    if (one.training) cases.push_back(std::move(one));
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Kinds, EverySignature, ::testing::ValuesIn(training_cases()),
                         [](const auto& row) { return row.param.name; });

TEST(Signatures, EveryKindWithKernelsIsTried) {
  std::set<std::string> tried;
  for (const OpCase& one : training_cases()) tried.insert(one.kind);
  for (const OpSchema* kind : op_schemas()) {
    if (kind->has_kernels) {
      EXPECT_EQ(tried.count(kind->name), 1U) << kind->name;
    }
  }
}

}  // namespace
}  // namespace millrace::shard
