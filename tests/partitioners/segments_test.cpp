// The sums along an order against the memory model, segment by segment.
#include "partitioners/common/segments.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>

#include "graph/stage_graph.h"
#include "partitioners/common/cut_points.h"
#include "plan/memory.h"
#include "tests/partitioners/random_graphs.h"
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
    const std::string layer = fmt::format("block{}", i);
    const auto name = [&](const char* what) { return fmt::format("block{}.{}", i, what); };
    TensorId y = builder.add({.name = name("conv"),
                              .kind = "conv2d",
                              .inputs = {x},
                              .attributes = {{"out_channels", std::int64_t{4}},
                                             {"kernel", std::vector<std::int64_t>{3, 3}},
                                             {"padding", std::vector<std::int64_t>{1, 1}}},
                              .layer = layer});
    y = builder.add({.name = name("norm"), .kind = "batch_norm", .inputs = {y}, .layer = layer});
    y = builder.add({.name = name("relu"), .kind = "relu", .inputs = {y}, .layer = layer});
    x = builder.add({.name = name("add"), .kind = "add", .inputs = {x, y}, .layer = layer});
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

// Cut points at every operator, and at every third.
std::vector<std::size_t> every(std::size_t step, std::size_t size) {
  std::vector<std::size_t> points;
  for (std::size_t i = 0; i < size; i += step) points.push_back(i);
  points.push_back(size);
  return points;
}

void expect_as_counted(const Graph& graph, const Order& order, std::size_t step) {
  const plan::TrainingBytes sizes{4, 8};
  const GraphBytes bytes(graph, sizes, true);
  const Segments segments(graph, bytes, order, every(step, order.size()));
  const plan::AnalyticBytes analytic(graph, sizes);
  const auto& points = segments.points();
  for (std::size_t begin = 0; begin < segments.items(); ++begin) {
    for (std::size_t end = begin + 1; end <= segments.items(); ++end) {
      std::vector<OpId> ops(order.begin() + static_cast<std::ptrdiff_t>(points[begin]),
                            order.begin() + static_cast<std::ptrdiff_t>(points[end]));
      std::sort(ops.begin(), ops.end());
      const std::string where = fmt::format("{} [{}, {}) of {}", graph.name(), begin, end, order.size());
      const Segment segment = segments.at(begin, end);
      const auto value = [](Bytes bytes) { return static_cast<double>(bytes.value()); };
      const auto kept = analytic.footprint(ops, 1), twice = analytic.footprint(ops, 2);
      ASSERT_EQ(segment.gradient_bytes, value(kept.weights)) << where;
      ASSERT_EQ(segment.gradient_bytes, segments.gradient_bytes(begin, end)) << where;
      ASSERT_EQ(segment.parameter_elements * 8, value(kept.optimizer)) << where;
      ASSERT_EQ(segment.kept_bytes, value(twice.per_slot - kept.per_slot)) << where;
      ASSERT_EQ(segment.kept_bytes + segment.kept_once, value(kept.per_slot)) << where;
      ASSERT_EQ(3 * (segment.received_bytes + segment.sent_bytes), value(kept.messages)) << where;
      ASSERT_GE(segment.passing_bytes, value(kept.workspace)) << where;
      const auto again = analytic.footprint(ops, 1, ops);
      ASSERT_EQ(segment.border_bytes, value(again.per_slot)) << where;
      ASSERT_GE(segment.passing_bytes + segment.recomputed_bytes + segment.recomputed_once, value(again.workspace))
          << where;
      double tensors = 0;
      for (const TensorId id : make_stage_graph(graph, ops).gradient_inputs) tensors += id >= 0 ? 1 : 0;
      ASSERT_EQ(segment.received_tensors, tensors) << where;
    }
  }
}

TEST(Segments, AgreeWithTheMemoryModelOnEverySegment) {
  for (const Graph& graph : {small_network(), ladder(3), branches(), ladder(40)}) {
    for (const std::size_t step : {1, 3}) {
      for (const Order& order : topological_orders(graph)) expect_as_counted(graph, order, step);
    }
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Graph graph = testing_support::random_graph(60, seed, 1 + static_cast<int>(seed));
    for (const Order& order : topological_orders(graph)) expect_as_counted(graph, order, 1 + seed % 4);
  }
}

TEST(CutPlaces, ManyOperatorsAreThinnedToTheCheapestPlaces) {
  const Graph graph = ladder(100);  // 201 operators; a cut inside a block crosses two tensors, between blocks one
  Order order(201);
  std::iota(order.begin(), order.end(), 0);
  const GraphBytes bytes(graph, {}, false);
  const CutPlaces places(graph, bytes, order, std::vector<double>(201, 1.0));
  EXPECT_EQ(places.count(), 201U);
  EXPECT_EQ(places.cheapest(201).size(), 202U);
  const Points points = places.cheapest(40);
  EXPECT_EQ(points.front(), 0U);
  EXPECT_EQ(points.back(), 201U);
  EXPECT_LE(points.size(), 42U);
  EXPECT_GE(points.size(), 30U);
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
  EXPECT_EQ(std::adjacent_find(points.begin(), points.end()), points.end());
  for (std::size_t i = 1; i + 1 < points.size(); ++i) EXPECT_EQ(points[i] % 2, 1U) << points[i];

  // Around one of them every place comes back; the coarse ones stay.
  const std::vector<std::size_t> centre{20};
  const Points near = places.near(points, centre, 1000);
  EXPECT_TRUE(std::includes(near.begin(), near.end(), points.begin(), points.end()));
  for (std::size_t i = points[19]; i <= points[21]; ++i)
    EXPECT_TRUE(std::binary_search(near.begin(), near.end(), i)) << i;
  EXPECT_EQ(near.size(), points.size() + points[21] - points[19] - 2);
}

TEST(CutPlaces, OnlyEndsOfItemsAreOffered) {
  const Graph graph = ladder(5);
  Order order(11);
  std::iota(order.begin(), order.end(), 0);
  const GraphBytes bytes(graph, {}, false);
  const std::vector<std::size_t> ends{3, 7, 11};
  EXPECT_EQ(CutPlaces(graph, bytes, order, std::vector<double>(11, 1.0), ends).cheapest(100), (Points{0, 3, 7, 11}));
}

}  // namespace
}  // namespace millrace::partitioners
