// `millrace bench train`: training runs of a list, in alternation with a peer's, and where our processor time goes.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/bench_train_rows.h"
#include "app/benchmarks.h"
#include "app/cell_run.h"
#include "app/child_process.h"
#include "app/kernel_times.h"
#include "app/kernel_variants.h"
#include "app/session.h"
#include "app/shipped_folder.h"
#include "app/train_cases.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "kernels/onednn/floor.h"
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

CellTask task_of(const TrainCase& one, const fs::path& folder) {
  CellTask task;
  task.command = CellCommand::run;
  task.effective = one.experiment.effective;
  task.ranks = one.ranks;
  task.folder = folder.string();
  task.id = one.experiment.name;
  return task;
}

// Where costs are to be measured, a job of its own does it once: the memory that it takes is none of training's.
TrainCase with_profile(TrainCase one, const fs::path& folder) {
  if (!one.experiment.costs.measured) return one;
  one.experiment.costs = {false, profile_cell(task_of(one, folder))};
  one.experiment.effective = effective_text(one.experiment);
  return one;
}

// What others do on the machine only makes an iteration longer, so the shortest says what the program takes.
Measured run_ours(const TrainCase& one, const fs::path& folder) {
  const CellTask task = task_of(one, folder);
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

// The last line that begins as a JSON document does: libraries warn beside it.
json last_document(const std::string& said) {
  const std::size_t at = said.rfind("\n{");
  const std::size_t begin = at == std::string::npos ? 0 : at + 1;
  return json::parse(said.substr(begin, said.find('\n', begin) - begin), nullptr, false);
}

// The peer prints one JSON line: sps [median, most, least], hwm of each process in MiB.
Measured run_peer(const TrainCase& one, const fs::path& folder) {
  const std::string command = fmt::format("/usr/bin/python3 '{}' {}", (folder / "bench.py").string(), one.peer);
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw SystemError("the peer cannot be started");
  std::string said;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) said.append(buffer, count);
  const int status = ::pclose(pipe);
  const json document = last_document(said);
  if (status != 0 || !document.is_object()) {
    throw Error(ExitCode::failed, fmt::format("{}: the peer failed ({}): {}", one.name, command, said));
  }
  try {
    return {document.at("sps").at(1).get<double>(), document.at("hwm").get<std::vector<double>>()};
  } catch (const json::exception& error) {
    throw Error(ExitCode::failed,
                fmt::format("{}: the peer printed other figures: {}: {}", one.name, error.what(), said));
  }
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
  json document() const {
    if (speeds.empty()) return nullptr;
    return {{"samples_per_s", spread(speeds)}, {"memory_mib", memory_mib}};
  }
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

/// Everything that was measured of a case, whatever failed of it.
json run_case(const TrainCase& one, const Arguments& arguments, const fs::path& folder) {
  Side ours, peer;
  std::vector<double> ratios;
  json row{{"case", one.name}, {"ranks", one.ranks}, {"status", "done"}, {"why_not", nullptr}, {"kernels", nullptr}};
  try {
    const TrainCase planned = with_profile(one, folder);
    for (int round = 0; round < arguments.rounds; ++round) {
      ours.add(run_ours(planned, folder));
      if (arguments.peers.empty() || one.peer.empty()) continue;
      peer.add(run_peer(one, arguments.peers));
      ratios.push_back(ours.speeds.back() / peer.speeds.back());
    }
  } catch (const Error& error) {
    row["status"] = "failed";
    row["why_not"] = error.what();
  }
  row["rounds"] = ours.speeds.size();
  row["ours"] = ours.document();
  row["peer"] = peer.document();
  row["ratio"] = ratios.empty() ? json(nullptr) : spread(ratios);
  row["memory_ratio"] = ratios.empty() ? json(nullptr) : json(ours.fullest() / peer.fullest());
  row["goal"] = one.goal ? json(*one.goal) : json(nullptr);
  row["memory_goal"] = one.memory_goal ? json(*one.memory_goal) : json(nullptr);
  if (ours.speeds.empty()) return row;
  // Other processes inherit no threads of this one's kernels.
  const ChildOutcome child = in_child([&] { return time_kernels(one).dump(); });
  if (child.code == ExitCode::done) {
    row["kernels"] = json::parse(child.text);
  } else if (row.at("status") == "done") {
    row["status"] = "failed";
    row["why_not"] = child.text;
  }
  return row;
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
  TrainRows rows(arguments.format == Format::json);
  bool whole = true;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    log::notice(fmt::format("{} of {}: {}", i + 1, cases.size(), cases[i].name));
    const json row = run_case(cases[i], arguments, folder.path());
    if (row.at("status") != "done") log::error(row.at("why_not").get<std::string>());
    whole = whole && row.at("status") == "done";
    rows.add(row);
  }
  rows.finish();
  return whole ? ExitCode::done : ExitCode::failed;
}

}  // namespace millrace::app
