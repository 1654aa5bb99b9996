// `millrace bench NAME`: the product's own benchmarks.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/bench_growth.h"
#include "app/benchmarks.h"
#include "app/commands.h"
#include "base/errors.h"
#include "base/text.h"

namespace millrace::app {
namespace {

constexpr const char* kTransport = "transport";  // the one that runs on several ranks

struct Benchmark {
  std::string name;
  ExitCode (*run)(const Arguments& arguments);
};

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> rows{{"planner", bench_planner},
                                           {"simulator", bench_simulator},
                                           {"growth", bench_growth},
                                           {"sharding", bench_sharding},
                                           {"train", bench_train}};
  return rows;
}

}  // namespace

ExitCode bench(const Arguments& arguments, comm::World& world) {
  const std::string& name = arguments.files.front();
  if (name == kTransport) return bench_transport(arguments, world);
  if (!world.root()) return ExitCode::done;
  std::vector<std::string> names{kTransport};
  for (const Benchmark& benchmark : benchmarks()) {
    names.push_back(benchmark.name);
    if (benchmark.name != name) continue;
    if (world.size() > 1) {
      throw InvalidInput(fmt::format("bench {} runs alone, without a launcher: it measures one process", name));
    }
    return benchmark.run(arguments);
  }
  throw InvalidInput(unknown_name("benchmark", name, names));
}

}  // namespace millrace::app
