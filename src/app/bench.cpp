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
#include "comm/shared_error.h"

namespace millrace::app {
namespace {

constexpr const char* kTransport = "transport";  // the one that runs on several ranks

struct Benchmark {
  std::string name;
  std::vector<std::string> options;  ///< those that it uses, besides --format and --quiet
  bool csv;                          ///< it offers --format csv
  ExitCode (*run)(const Arguments& arguments);
};

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> rows{
      {"planner", {"--data", "--only", "--workloads", "--time-limit"}, true, bench_planner},
      {"simulator", {"--data"}, true, bench_simulator},
      {"growth", {}, false, bench_growth},
      {"sharding", {}, false, bench_sharding},
      {"train", {"--data", "--only", "--peers", "--rounds"}, false, bench_train},
      {kTransport, {"--rounds"}, false, nullptr}};
  return rows;
}

const Benchmark& benchmark_of(const std::string& name) {
  std::vector<std::string> names;
  for (const Benchmark& benchmark : benchmarks()) {
    if (benchmark.name == name) return benchmark;
    names.push_back(benchmark.name);
  }
  throw InvalidInput(unknown_name("benchmark", name, names));
}

// What is typed and not used would leave a user with figures of something else.
void check_options(const Benchmark& benchmark, const Arguments& arguments) {
  for (const std::string& typed : arguments.typed) {
    if (std::find(benchmark.options.begin(), benchmark.options.end(), typed) != benchmark.options.end()) continue;
    throw InvalidInput(fmt::format(
        "bench {} does not use {}; it takes: {}", benchmark.name, typed,
        join(benchmark.options.empty() ? std::vector<std::string>{"--format", "--quiet"} : benchmark.options)));
  }
  if (arguments.format == Format::csv && !benchmark.csv) {
    throw InvalidInput(fmt::format("bench {}: --format: found 'csv', allowed: table, json", benchmark.name));
  }
}

}  // namespace

ExitCode bench(const Arguments& arguments, comm::World& world) {
  const Benchmark& benchmark = comm::on_all_alike([&]() -> const Benchmark& {
    const Benchmark& found = benchmark_of(arguments.files.front());
    check_options(found, arguments);
    return found;
  });
  if (benchmark.name == kTransport) return bench_transport(arguments, world);
  if (world.size() > 1) {
    throw comm::SharedError(
        ExitCode::usage,
        fmt::format("bench {} runs alone, without a launcher: it measures one process", benchmark.name));
  }
  return benchmark.run(arguments);
}

}  // namespace millrace::app
