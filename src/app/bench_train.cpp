// `millrace bench train`: training runs of a list, in alternation with a peer's, and where our processor time goes.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/benchmarks.h"
#include "app/cell_run.h"
#include "app/child_process.h"
#include "app/kernel_times.h"
#include "app/kernel_variants.h"
#include "app/print.h"
#include "app/session.h"
#include "app/shipped_folder.h"
#include "app/train_cases.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "kernels/onednn/floor.h"
#include "planner/tables.h"
#include "record/results.h"

namespace millrace::app {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double kMiB = 1024.0 * 1024.0;
constexpr const char* kCases = "experiments/training_speed.yaml";

/// A folder that goes away with it.
class WorkFolder {
 public:
  WorkFolder() : path_(fs::temp_directory_path() / fmt::format("millrace-bench-{}", ::getpid())) {
    fs::create_directories(path_);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// One run: samples per second of its fastest iteration, and the peak memory of each rank's process.
struct Measured {
  double samples_per_s = 0;
  std::vector<double> memory_mib;
};

std::vector<double> column(const record::DataTable& table, std::string_view name) {
  std::vector<double> values;
  const std::size_t at = table.at(name);
  for (const auto& row : table.rows) values.push_back(record::number_of(row[at]).value_or(0));
  return values;
}

// What others do on the machine only makes an iteration longer, so the shortest says what the program takes.
Measured run_ours(const TrainCase& one, const fs::path& folder) {
  CellTask task;
  task.command = CellCommand::run;
  task.effective = one.experiment.effective;
  task.ranks = one.ranks;
  task.folder = folder.string();
  task.id = one.experiment.name;
  const json cell = run_cell(task);
  if (cell.at("status") != "done") {
    throw Error(ExitCode::failed, fmt::format("{}: {}", one.name, cell.at("reason").get<std::string>()));
  }
  const record::Results results = record::read_results(folder / (task.id + ".h5"));
  const std::vector<double> times = column(results.iterations, "time_s");
  Measured measured;
  measured.samples_per_s =
      static_cast<double>(one.experiment.data.batch) / *std::min_element(times.begin(), times.end());
  for (const double bytes : column(results.ranks, "peak_rss_bytes")) measured.memory_mib.push_back(bytes / kMiB);
  return measured;
}

// The peer prints one JSON line: sps [median, most, least], hwm of each process in MiB.
Measured run_peer(const TrainCase& one, const fs::path& folder) {
  const std::string command = fmt::format("/usr/bin/python3 '{}' {} 2>&1", (folder / "bench.py").string(), one.peer);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw SystemError("the peer cannot be started");
  std::string said;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) said.append(buffer, count);
  const int status = ::pclose(pipe);
  const json document = json::parse(said, nullptr, false);
  if (status != 0 || !document.is_object()) {
    throw Error(ExitCode::failed, fmt::format("{}: the peer failed ({}): {}", one.name, command, said));
  }
  return {document.at("sps").at(1).get<double>(), document.at("hwm").get<std::vector<double>>()};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

json spread(const std::vector<double>& values) {
  return {{"median", median(values)},
          {"least", *std::min_element(values.begin(), values.end())},
          {"most", *std::max_element(values.begin(), values.end())}};
}

/// The runs of one side.
struct Side {
  std::vector<double> speeds;
  std::vector<double> memory_mib;  ///< by rank, the most of any run

  void add(const Measured& run) {
    speeds.push_back(run.samples_per_s);
    memory_mib.resize(run.memory_mib.size());
    for (std::size_t i = 0; i < memory_mib.size(); ++i) memory_mib[i] = std::max(memory_mib[i], run.memory_mib[i]);
  }
  double fullest() const { return *std::max_element(memory_mib.begin(), memory_mib.end()); }
  json document() const { return {{"samples_per_s", spread(speeds)}, {"memory_mib", memory_mib}}; }
};

// The kernels of one rank's whole mini-batch, alone: communication, waiting and data are not in it.
json time_kernels(const TrainCase& one) {
  Experiment experiment = one.experiment;
  const Graph graph = load_graph(experiment);
  const std::int64_t rows = experiment.data.batch;
  json kinds = json::array();
  double total = 0;
  for (const KindTime& kind : kernel_times(graph, rows, kept_variants(1))) {
    kinds.push_back({{"kind", kind.kind}, {"forward_s", kind.forward_s}, {"backward_s", kind.backward_s}});
    total += kind.forward_s + kind.backward_s;
  }
  const double floor = kernels::onednn::floor_seconds(graph, rows);
  return {{"kinds", kinds},
          {"seconds", total},
          {"floor_s", floor},
          {"share_of_floor", floor / total},
          {"samples_per_cpu_s", static_cast<double>(rows) / total},
          {"share_of_peak", step_flops(graph, rows) / total / matmul_peak()}};
}

json run_case(const TrainCase& one, const Arguments& arguments, const fs::path& folder) {
  const bool peers = !arguments.peers.empty() && !one.peer.empty();
  Side ours, peer;
  std::vector<double> ratios;
  for (int round = 0; round < arguments.rounds; ++round) {
    ours.add(run_ours(one, folder));
    if (!peers) continue;
    peer.add(run_peer(one, arguments.peers));
    ratios.push_back(ours.speeds.back() / peer.speeds.back());
  }
  json row{{"case", one.name}, {"ranks", one.ranks}, {"rounds", arguments.rounds}};
  row["ours"] = ours.document();
  row["peer"] = peers ? peer.document() : json(nullptr);
  row["ratio"] = peers ? spread(ratios) : json(nullptr);
  row["memory_ratio"] = peers ? json(ours.fullest() / peer.fullest()) : json(nullptr);
  // Other processes inherit no threads of this one's kernels.
  const ChildOutcome child = in_child([&] { return time_kernels(one).dump(); });
  if (child.code != ExitCode::done) throw Error(child.code, child.text);
  row["kernels"] = json::parse(child.text);
  return row;
}

std::string figures(const json& spread, const char* form) {
  if (spread.is_null()) return "-";
  return fmt::format(fmt::runtime(form), spread.at("median").get<double>(), spread.at("least").get<double>(),
                     spread.at("most").get<double>());
}

std::string memory(const json& side) {
  if (side.is_null()) return "-";
  std::vector<std::string> ranks;
  for (const json& rank : side.at("memory_mib")) ranks.push_back(fmt::format("{:.0f}", rank.get<double>()));
  return join(ranks, " + ");
}

std::string text(const std::vector<json>& rows) {
  planner::Table speeds{{"case", "samples/s", "peer", "ratio", "MiB", "peer", "ratio"}, {}};
  planner::Table kinds{{"case", "kind", "forward", "backward", "share"}, {}};
  for (const json& row : rows) {
    const std::string name = row.at("case").get<std::string>();
    const json& peer = row.at("peer");
    speeds.rows.push_back({name, figures(row.at("ours").at("samples_per_s"), "{:.4g} ({:.4g} to {:.4g})"),
                           peer.is_null() ? "-" : figures(peer.at("samples_per_s"), "{:.4g} ({:.4g} to {:.4g})"),
                           figures(row.at("ratio"), "{:.2f} ({:.2f} to {:.2f})"), memory(row.at("ours")), memory(peer),
                           peer.is_null() ? "-" : fmt::format("{:.2f}", row.at("memory_ratio").get<double>())});
    const json& kernels = row.at("kernels");
    const double total = kernels.at("seconds").get<double>();
    for (const json& kind : kernels.at("kinds")) {
      const double forward = kind.at("forward_s").get<double>(), backward = kind.at("backward_s").get<double>();
      kinds.rows.push_back({name, kind.at("kind").get<std::string>(), format(Seconds(forward)),
                            format(Seconds(backward)), fmt::format("{:.1f} %", 100 * (forward + backward) / total)});
    }
    kinds.rows.push_back(
        {name, "all kernels", format(Seconds(total)), "",
         fmt::format("{:.0f} % of peak, {:.0f} % of floor", 100 * kernels.at("share_of_peak").get<double>(),
                     100 * kernels.at("share_of_floor").get<double>())});
  }
  return table_text(speeds) +
         "\nspeeds: of the fastest iteration of each run, median over runs with least and most\n"
         "ratios: run by run, in alternation; memory: peak of each process, of the fullest rank\n\n" +
         table_text(kinds) +
         "processor time of one thread on the whole mini-batch, without communication\n"
         "floor: its products and convolutions alone, each by the fastest call for its shape\n";
}

fs::path cases_file(const Arguments& arguments) {
  if (!arguments.data.empty()) return arguments.data;
  if (const auto found = find_shipped(kCases)) return *found;
  throw InvalidInput(fmt::format("{} is not there; name a list with --data", kCases));
}

void check_peers(const Arguments& arguments) {
  if (arguments.peers.empty() || fs::exists(fs::path(arguments.peers) / "bench.py")) return;
  throw InvalidInput(fmt::format("--peers: no bench.py in '{}'", arguments.peers));
}

}  // namespace

ExitCode bench_train(const Arguments& arguments) {
  check_peers(arguments);
  const fs::path list = cases_file(arguments);
  std::vector<TrainCase> cases = read_train_cases(list);
  std::vector<std::string> names;
  for (const TrainCase& one : cases) names.push_back(one.name);
  if (!arguments.only.empty()) {
    std::erase_if(cases, [&](const TrainCase& one) { return !matches_glob(arguments.only, one.name); });
  }
  if (cases.empty()) {
    throw InvalidInput(
        fmt::format("--only: no case of {} matches '{}'; it has: {}", list.string(), arguments.only, join(names)));
  }
  const WorkFolder folder;
  std::vector<json> rows;
  for (const TrainCase& one : cases) {
    rows.push_back(run_case(one, arguments, folder.path()));
    log::notice(fmt::format("{} of {}: {}", rows.size(), cases.size(), one.name));
  }
  print(arguments.format == Format::json ? json{{"rows", rows}}.dump(2) + "\n" : text(rows));
  return ExitCode::done;
}

}  // namespace millrace::app
