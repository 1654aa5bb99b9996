// The incremental counts of segments against the memory model, segment by segment.
#include "partitioners/common/segments.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>

#include "tests/plan/table_cost.h"

namespace millrace::partitioners {
namespace {

using testing_support::branches;
using testing_support::ladder;

// Two residual blocks with batch norm, and one weight that two linears share.
Graph small_network() {
  GraphBuilder builder("small");
  TensorId x = builder.input("x", {Dims{4, 4, 4}});
  for (int i = 0; i < 2; ++i) {
    const auto name = [&](const char* what) { return fmt::format("block{}.{}", i, what); };
    TensorId y = builder.add({.name = name("conv"),
                              .kind = "conv2d",
                              .inputs = {x},
                              .attributes = {{"out_channels", std::int64_t{4}},
                                             {"kernel", std::vector<std::int64_t>{3, 3}},
                                             {"padding", std::vector<std::int64_t>{1, 1}}}});
    y = builder.add({.name = name("norm"), .kind = "batch_norm", .inputs = {y}});
    y = builder.add({.name = name("relu"), .kind = "relu", .inputs = {y}});
    x = builder.add({.name = name("add"), .kind = "add", .inputs = {x, y}});
  }
  x = builder.add({.name = "flatten", .kind = "flatten", .inputs = {x}});
  x = builder.add({.name = "fc0", .kind = "linear", .inputs = {x}, .attributes = {{"out_features", std::int64_t{64}}}});
  const TensorId shared = builder.find_tensor("fc0.weight");
  x = builder.add({.name = "fc1",
                   .kind = "linear",
                   .inputs = {x},
                   .attributes = {{"out_features", std::int64_t{64}}},
                   .shared_parameters = {shared, -1}});
  const TensorId label = builder.label("labels", {Dims{}, ElementType::index});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, label}});
  return builder.build();
}

TEST(SegmentTable, AgreesWithTheMemoryModelOnEverySegment) {
  const plan::TrainingBytes sizes{4, 8};
  for (const Graph& graph : {small_network(), ladder(3), branches()}) {
    Order order(static_cast<std::size_t>(graph.size()));
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::size_t> points(order.size() + 1);
    std::iota(points.begin(), points.end(), std::size_t{0});
    const SegmentTable table(graph, order, points, sizes);
    const plan::AnalyticBytes bytes(graph, sizes);
    for (std::size_t begin = 0; begin < order.size(); ++begin) {
      for (std::size_t end = begin + 1; end <= order.size(); ++end) {
        const std::vector<OpId> ops(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                    order.begin() + static_cast<std::ptrdiff_t>(end));
        const auto footprint = bytes.footprint(ops, 2);
        const Segment& segment = table.at(begin, end);
        const std::string where = fmt::format("{} [{}, {})", graph.name(), begin, end);
        EXPECT_EQ(segment.parameter_elements * 4 + segment.buffer_bytes, static_cast<double>(footprint.weights.value()))
            << where;
        EXPECT_EQ(segment.parameter_elements * 8, static_cast<double>(footprint.optimizer.value())) << where;
        EXPECT_EQ(2 * segment.kept_bytes + segment.kept_bytes_once, static_cast<double>(footprint.per_slot.value()))
            << where;
        EXPECT_EQ(2 * 3 * (segment.received_bytes + segment.sent_bytes),
                  static_cast<double>(footprint.messages.value()))
            << where;
      }
    }
  }
}

TEST(CutPoints, ManyOperatorsAreThinnedToTheCheapestPlaces) {
  const Graph graph = ladder(100);  // 201 operators; a cut inside a block crosses two tensors, between blocks one
  Order order(201);
  std::iota(order.begin(), order.end(), 0);
  const std::vector<std::size_t> points = cut_points(graph, order, std::vector<double>(201, 1.0), 40);
  EXPECT_EQ(points.front(), 0U);
  EXPECT_EQ(points.back(), 201U);
  EXPECT_LE(points.size(), 41U);
  EXPECT_GE(points.size(), 30U);
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
  EXPECT_EQ(std::adjacent_find(points.begin(), points.end()), points.end());
  for (std::size_t i = 1; i + 1 < points.size(); ++i) EXPECT_EQ(points[i] % 2, 1U) << points[i];
}

}  // namespace
}  // namespace millrace::partitioners
