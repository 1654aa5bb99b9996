// `millrace bench sharding`: how long propagation takes as transformers grow, letters and extents included.
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/benchmarks.h"
#include "app/print.h"
#include "base/text.h"
#include "models/families.h"
#include "planner/tables.h"
#include "shard/annotations.h"

namespace millrace::app {
namespace {

using nlohmann::json;

constexpr std::int64_t kDepths[] = {12, 96, 300, 10000};
constexpr int kDevices = 8;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The annotations of experiments/gpt-sharded.yaml.
std::vector<shard::Annotation> megatron() {
  std::vector<shard::Annotation> three(3);
  three[0].tensor = "blocks.*.attention.qkv.weight";
  three[1].tensor = "blocks.*.mlp.up.weight";
  three[2].tensor = "embedding.token.weight";
  return three;
}

json measure(std::int64_t layers) {
  const Graph graph = models::make_gpt({.layers = layers, .width = 1024, .heads = 16});
  const cluster::Cluster machine("flat", cluster::Kind::described, std::vector<cluster::Device>(kDevices),
                                 std::vector<int>(kDevices, 0), {{"node", {BytesPerSecond(1e11), Seconds(5e-6)}}}, {});
  const auto start = std::chrono::steady_clock::now();
  const shard::OpTable ops(graph);
  const shard::TensorTable tensors(graph, ops, 8);
  shard::Mesh mesh({{"tensor", kDevices}});
  const shard::MeshLinks links(mesh, machine);
  const auto given = shard::resolve(megatron(), graph, tensors, mesh);
  const double read = seconds_since(start);
  const shard::Decision decision = shard::propagate(graph, ops, tensors, mesh, links, given);
  const double all = seconds_since(start);
  std::int64_t split = 0;
  for (const shard::Placement& placement : decision.placements) split += placement[0].is_split() ? 1 : 0;
  return {{"layers", layers}, {"operators", graph.size()}, {"tensors", graph.tensors().size()},
          {"split", split},   {"letters_s", read},         {"propagation_s", all - read},
          {"seconds", all}};
}

}  // namespace

ExitCode bench_sharding(const Arguments& arguments) {
  json rows = json::array();
  planner::Table table{{"layers", "operators", "tensors", "split", "letters", "propagation", "in all"}, {}};
  for (const std::int64_t layers : kDepths) {
    json row = measure(layers);
    const auto time = [&](const char* key) { return format(Seconds(row.at(key).get<double>())); };
    table.rows.push_back({row.at("layers").dump(), row.at("operators").dump(), row.at("tensors").dump(),
                          row.at("split").dump(), time("letters_s"), time("propagation_s"), time("seconds")});
    rows.push_back(std::move(row));
  }
  if (arguments.format == Format::json) {
    print(json{{"rows", std::move(rows)}});
  } else {
    print(table_text(table));
  }
  return ExitCode::done;
}

}  // namespace millrace::app
