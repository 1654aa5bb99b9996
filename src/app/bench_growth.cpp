// `millrace bench growth`: how long the simulation of a training step takes, and what it holds, as devices,
// micro-batches and stages grow.
#include "app/bench_growth.h"

#include <chrono>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/child_process.h"
#include "app/print.h"
#include "base/log.h"
#include "base/text.h"
#include "planner/tables.h"
#include "sim/fold.h"
#include "sim/run.h"
#include "sim/sample_job.h"

namespace millrace::app {
namespace {

using nlohmann::json;

enum class Mode : std::uint8_t { unfolded, folded, jitter };
constexpr const char* kModes[] = {"unfolded", "folded", "unfolded, jitter"};

struct GrowthCase {
  int tensor, pipeline, data, micro_batches;
  Mode mode;
  int devices() const { return tensor * pipeline * data; }
};

// 96 layers of four tensor collectives, two in each pass, over the stages.
constexpr int kLayers = 96;

const std::vector<GrowthCase>& cases() {
  static const std::vector<GrowthCase> all{
      {8, 8, 1, 16, Mode::unfolded},   {8, 8, 4, 16, Mode::unfolded},    {8, 16, 8, 16, Mode::unfolded},
      {8, 16, 32, 16, Mode::unfolded}, {8, 16, 128, 16, Mode::unfolded}, {8, 16, 782, 16, Mode::unfolded},
      {8, 16, 32, 16, Mode::jitter},   {8, 16, 782, 16, Mode::jitter},   {8, 16, 32, 16, Mode::folded},
      {8, 16, 782, 16, Mode::folded},  {8, 16, 32, 32, Mode::unfolded},  {8, 16, 32, 64, Mode::unfolded},
      {8, 32, 16, 16, Mode::unfolded}, {8, 48, 11, 16, Mode::unfolded}};
  return all;
}

// In the child: a step whose figures are of no machine; only its events count.
json simulate_case(const GrowthCase& one) {
  const auto start = std::chrono::steady_clock::now();
  const sim::SampleJob sample = sim::sample_job(
      {.stages = one.pipeline, .micro_batches = one.micro_batches, .collectives = 2 * kLayers / one.pipeline});
  sim::Job job = sim::grid(sample.job, one.tensor, one.data, sample.reach);
  if (one.mode == Mode::folded) job = sim::fold(job);
  sim::Options options;
  options.contention = sim::Contention::fixed;
  if (one.mode == Mode::jitter) options.noise = {.shape = sim::Shape::lognormal, .spread = 0.05};
  const sim::Outcome outcome = sim::run(job, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return {{"ranks_simulated", job.ranks.size()},
          {"steps", outcome.steps},
          {"seconds", took.count()},
          {"simulated_s", outcome.makespan.value()}};
}

std::string table_of(const std::vector<json>& rows) {
  planner::Table table{
      {"devices", "tensor", "pipeline", "data", "micro-batches", "how", "steps", "time", "ns/step", "memory"}, {}};
  for (const json& row : rows) {
    const double seconds = row.at("seconds"), steps = row.at("steps");
    table.rows.push_back({row.at("devices").dump(), row.at("tensor").dump(), row.at("pipeline").dump(),
                          row.at("data").dump(), row.at("micro_batches").dump(), row.at("mode").get<std::string>(),
                          row.at("steps").dump(), fmt::format("{:.3f} s", seconds),
                          fmt::format("{:.0f}", seconds / steps * 1e9),
                          format(Bytes(row.at("peak_rss_bytes").get<std::int64_t>()))});
  }
  return table_text(table);
}

}  // namespace

ExitCode bench_growth(const Arguments& arguments) {
  std::vector<json> rows;
  for (const GrowthCase& one : cases()) {
    const ChildOutcome child = in_child([&] { return simulate_case(one).dump(); });
    if (child.code != ExitCode::done) throw Error(child.code, child.text);
    json row = json::parse(child.text);
    row["devices"] = one.devices();
    row["tensor"] = one.tensor;
    row["pipeline"] = one.pipeline;
    row["data"] = one.data;
    row["micro_batches"] = one.micro_batches;
    row["mode"] = kModes[static_cast<std::size_t>(one.mode)];
    row["peak_rss_bytes"] = child.peak_rss_bytes;
    log::notice(fmt::format("{} devices, {}: {:.3f} s", one.devices(), row["mode"].get<std::string>(),
                            row["seconds"].get<double>()));
    rows.push_back(std::move(row));
  }
  if (arguments.format == Format::json) {
    print(json{{"rows", rows}});
  } else {
    print(table_of(rows));
  }
  return ExitCode::done;
}

}  // namespace millrace::app
