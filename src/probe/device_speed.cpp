// Dense layers of a size that fits into the caches of any core.
#include "probe/device_speed.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "graph/graph_builder.h"
#include "probe/network_sample.h"

namespace millrace::probe {
namespace {

constexpr std::int64_t kWidth = 384;
constexpr std::int64_t kRows = 32;
constexpr std::size_t kLeast = 3;  // repetitions

Graph dense_network() {
  GraphBuilder builder("dense");
  TensorId x = builder.input("input", {Dims{kWidth}});
  for (const char* name : {"a", "b", "c"}) {
    x = builder.add(
        {.name = name, .kind = "linear", .inputs = {x}, .attributes = {{"out_features", kWidth}, {"bias", true}}});
  }
  TensorShape classes;
  classes.element = ElementType::index;
  const TensorId labels = builder.label("label", classes);
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {x, labels}, .attributes = {}});
  return builder.build();
}

}  // namespace

Seconds measure_dense_network(kernels::Device& device, kernels::Precision precision, Seconds time) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const Graph graph = dense_network();
  NetworkSample sample(graph, device, precision, 1);
  sample.compile(kRows);
  std::vector<double> seconds;
  const Clock::time_point begun = Clock::now();
  while (seconds.size() < kLeast || since(begun) < time.value()) {
    const Clock::time_point start = Clock::now();
    sample.forward();
    sample.backward();
    seconds.push_back(since(start));
  }
  const auto quartile = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 4);
  std::nth_element(seconds.begin(), quartile, seconds.end());
  return Seconds(*quartile);
}

}  // namespace millrace::probe
