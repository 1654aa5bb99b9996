// Builds the networks and plans that the tests share.
#include "tests/program/networks.h"

#include <numeric>

#include "graph/graph_builder.h"
#include "program/lowering.h"
#include "program/stage_dag.h"
#include "schedules/placement.h"
#include "schedules/registry.h"

namespace millrace::test {
namespace {

constexpr std::int64_t kWidth = 4;

TensorId add(GraphBuilder& builder, std::string name, std::string kind, std::vector<TensorId> inputs,
             Attributes attributes = {}) {
  OpSpec spec;
  spec.name = std::move(name);
  spec.kind = std::move(kind);
  spec.inputs = std::move(inputs);
  spec.attributes = std::move(attributes);
  return builder.add(std::move(spec));
}

TensorId linear(GraphBuilder& builder, std::string name, TensorId input, std::int64_t width = kWidth) {
  return add(builder, std::move(name), "linear", {input}, {{"out_features", width}});
}

Graph with_loss(GraphBuilder& builder, TensorId output) {
  const TensorId target = builder.label("target", {.dims = {kWidth}});
  add(builder, "loss", "mean_squared_error", {output, target});
  return builder.build();
}

}  // namespace

Graph chain(int linears) {
  GraphBuilder builder("chain");
  TensorId x = builder.input("input", {.dims = {kWidth}});
  for (int i = 0; i < linears; ++i) x = linear(builder, "linear" + std::to_string(i), x);
  return with_loss(builder, x);
}

Graph skips(int blocks) {
  GraphBuilder builder("skips");
  const TensorId first = linear(builder, "first", builder.input("input", {.dims = {kWidth}}));
  TensorId x = first;
  for (int i = 0; i < blocks; ++i) {
    x = linear(builder, "linear" + std::to_string(i), x);
    x = add(builder, "add" + std::to_string(i), "add", {x, first});
  }
  return with_loss(builder, x);
}

Graph tied(int linears) {
  GraphBuilder builder("tied");
  const TensorId tokens = builder.input("tokens", {.dims = {2}, .element = ElementType::index});
  TensorId x = add(builder, "embedding", "embedding", {tokens}, {{"vocabulary", std::int64_t{8}}, {"width", kWidth}});
  for (int i = 0; i < linears; ++i) x = linear(builder, "linear" + std::to_string(i), x);
  OpSpec head;
  head.name = "head";
  head.kind = "linear";
  head.inputs = {x};
  head.attributes = {{"out_features", std::int64_t{8}}, {"bias", false}};
  head.shared_parameters = {builder.find_tensor("embedding.weight")};
  x = builder.add(std::move(head));
  const TensorId labels = builder.label("labels", {.dims = {2}, .element = ElementType::index});
  add(builder, "loss", "cross_entropy", {x, labels});
  return builder.build();
}

Graph normalised(int blocks) {
  GraphBuilder builder("normalised");
  TensorId x = builder.input("input", {.dims = {2, 4, 4}});
  for (int i = 0; i < blocks; ++i) {
    const std::string number = std::to_string(i);
    x = add(builder, "conv" + number, "conv2d", {x},
            {{"out_channels", std::int64_t{2}}, {"kernel", std::vector<std::int64_t>{1, 1}}});
    x = add(builder, "norm" + number, "batch_norm", {x});
  }
  return with_loss(builder, linear(builder, "head", add(builder, "flatten", "flatten", {x})));
}

Graph diamond() {
  GraphBuilder builder("diamond");
  const TensorId root = linear(builder, "root", builder.input("input", {.dims = {kWidth}}));
  const TensorId left = linear(builder, "left", root);
  const TensorId right = linear(builder, "right", root);
  return with_loss(builder, add(builder, "join", "add", {left, right}));
}

Plan make_plan(const Graph& graph, const std::vector<PipelineShape>& pipelines, std::string schedule) {
  Plan plan;
  plan.schedule = std::move(schedule);
  int device = 0;
  for (const PipelineShape& shape : pipelines) {
    Pipeline& pipeline = plan.pipelines.emplace_back();
    pipeline.share = shape.share;
    pipeline.micro_batches = shape.micro_batches;
    pipeline.warmup = shape.warmup;
    const auto stages = static_cast<std::int64_t>(shape.replicas.size());
    std::int64_t next = 0;
    for (std::int64_t s = 0; s < stages; ++s) {
      Stage& stage = pipeline.stages.emplace_back();
      const std::int64_t end = shape.ops_per_stage.empty() ? (s + 1) * graph.size() / stages
                                                           : next + shape.ops_per_stage[static_cast<std::size_t>(s)];
      for (; next < end; ++next) stage.ops.push_back(static_cast<OpId>(next));
      const int replicas = shape.replicas[static_cast<std::size_t>(s)];
      for (int r = 0; r < replicas; ++r) stage.devices.push_back(device++);
      stage.shares.assign(static_cast<std::size_t>(replicas), 1.0 / replicas);
    }
  }
  return plan;
}

Plan placed(const Plan& plan, int places, schedules::Placement placement) {
  Plan result = plan;
  result.pipelines.clear();
  int device = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    std::vector<schedules::Seat> seats;
    for (int s = 0; s < places; ++s) {
      const Stage& stage = pipeline.stages[static_cast<std::size_t>(s)];
      schedules::Seat& seat = seats.emplace_back(schedules::Seat{{}, stage.shares, stage.tensor_parallel});
      for (std::size_t i = 0; i < stage.devices.size(); ++i) seat.devices.push_back(device++);
    }
    for (Pipeline& part : schedules::place(pipeline, seats, placement)) result.pipelines.push_back(std::move(part));
  }
  return result;
}

Program make_program(const Graph& graph, const Plan& plan, std::int64_t batch) {
  return lower(graph, plan, schedules::compute_order(plan, make_stage_dag(graph, plan)), batch);
}

}  // namespace millrace::test
