// Reads a sweep file with its base experiment, a list of workloads as a sweep, and files that name several sweeps.
#include "app/sweep_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "app/experiment.h"
#include "app/shipped_folder.h"
#include "base/errors.h"
#include "config/document.h"
#include "config/reader.h"
#include "config/set.h"

namespace millrace::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShippedSteps = "data/measured_steps.csv";

const std::vector<std::string>& command_names() {
  static const std::vector<std::string> names{"plan", "simulate", "run", "predict"};  // in the order of CellCommand
  return names;
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

CellLimits read_limits(const config::Field& field) {
  config::Reader reader(field);
  CellLimits limits;
  limits.time = reader.optional("time", config::Duration{});
  limits.memory = reader.optional("memory", config::Size{});
  return limits;
}

// The experiment itself, or the file that holds it.
config::Node read_base(const config::Field& field, SweepFile& sweep, config::Problems& problems) {
  if (field.is_map()) return *field.node();
  const fs::path file = field.input_file();
  if (file.empty()) return config::Node::map();
  sweep.inputs.push_back(file);
  return config::load_file(file, problems);
}

fs::path read_steps(const config::Field& field) {
  if (field) return field.input_file();
  if (const auto file = find_shipped(kShippedSteps)) return *file;
  throw InvalidInput(fmt::format("{} is not there; the key steps names another file", kShippedSteps));
}

void read_keys(config::Reader& reader, SweepFile& sweep, config::Problems& problems) {
  const config::Field name = reader.field("sweep");
  sweep.name = name.as(config::Text{});
  if (name && (sweep.name.empty() || sweep.name.find('/') != std::string::npos)) {
    name.refuse("found no plain name; allowed: a name without '/': it names the results files");
  }
  const std::string command = reader.get("command", config::OneOf{command_names()}, "plan");
  const auto& names = command_names();
  const auto known = std::find(names.begin(), names.end(), command);
  if (known != names.end()) sweep.command = static_cast<CellCommand>(known - names.begin());
  if (sweep.command == CellCommand::predict) {
    sweep.steps = read_steps(reader.field("steps"));
    sweep.inputs.push_back(sweep.steps);
  } else {
    sweep.base = read_base(reader.field("base"), sweep, problems);
  }
  sweep.matrix = config::read_matrix(reader);
  sweep.repetitions = static_cast<int>(reader.get("repetitions", config::Integer{1, 10000}, 1));
  sweep.limits = read_limits(reader.field("limits"));
  if (const config::Field published = reader.field("published")) {
    sweep.inputs.push_back(published.input_file());
    sweep.published = content_of(sweep.inputs.back());
  }
}

// What the rows of a list say of others, as the sheet of a sweep. Their values have six digits.
std::string sheet_of(const BenchList& list) {
  std::string sheet = "table,row,select,metric,published,better,tolerance,setting,source,why\n";
  const auto add = [&](const BenchCase& one, const char* metric, double published, const char* tolerance,
                       const std::string& why) {
    sheet += fmt::format("{},\"{}, {}\",workload={}; plan.partitioner={},{},{:.9g},lower,{},{},\"{}\",\"{}\"\n",
                         list.table, one.workload, one.partitioner, one.workload, one.partitioner, metric, published,
                         tolerance, one.partitioner, list.source, why);
  };
  for (const BenchCase& one : list.cases) {
    if (one.published) add(one, "objective_value", *one.published, "1e-5", list.why);
    const bool alone = std::count_if(list.cases.begin(), list.cases.end(),
                                     [&](const BenchCase& other) { return other.workload == one.workload; }) == 1;
    // Beside others the time is that of the exact planner.
    if (one.published_cpu && (alone || one.partitioner == "exact")) {
      add(one, "planning_time_s", one.published_cpu->value(), "0", "ours is wall time, beside whatever else runs");
    }
  }
  return sheet;
}

SweepFile sweep_of_list(const fs::path& file, const Arguments& arguments) {
  BenchList list = read_bench_list(file, workloads_folder(arguments.workloads));
  SweepFile sweep;
  sweep.name = list.sweep;
  sweep.inputs.push_back(file);
  sweep.matrix.small = list.small;
  if (list.published) {
    sweep.inputs.push_back(*list.published);
    sweep.published = content_of(*list.published);
  } else {
    sweep.published = sheet_of(list);
  }
  sweep.cases = std::move(list.cases);
  config::Problems problems;
  for (const std::string& set : arguments.sets) {
    for (BenchCase& one : sweep.cases) config::apply_set(one.experiment, set, experiment_short_forms(), problems);
  }
  problems.throw_if_any();
  return sweep;
}

}  // namespace

std::string name_of(CellCommand command) { return command_names()[static_cast<std::size_t>(command)]; }

std::vector<fs::path> sweeps_of(const fs::path& file) {
  config::Problems problems;
  const config::Node root = config::load_file(file, problems);
  if (!root.is_map() || root.find("sweeps") == nullptr) return {file};
  std::vector<fs::path> files;
  {
    config::Reader reader(root, problems);
    for (const config::Field& one : reader.field("sweeps").items()) files.push_back(one.input_file());
  }
  problems.throw_if_any();
  return files;
}

SweepFile read_sweep_file(const fs::path& file, const Arguments& arguments) {
  config::Problems problems;
  const config::Node root = config::load_file(file, problems);
  if (root.find("bench") != nullptr) return sweep_of_list(file, arguments);
  if (root.find("sweep") == nullptr && root.find("model") != nullptr) {
    throw InvalidInput(fmt::format("{}: this is one experiment; a sweep names it: base: {}, and has a matrix",
                                   file.string(), file.filename().string()));
  }
  SweepFile sweep;
  sweep.inputs.push_back(file);
  {
    config::Reader reader(root, problems);
    read_keys(reader, sweep, problems);
  }
  for (const std::string& set : arguments.sets) {
    config::apply_set(sweep.base, set, experiment_short_forms(), problems);
  }
  problems.throw_if_any();
  if (sweep.command != CellCommand::predict && sweep.base.find("name") == nullptr) {
    sweep.base.add("name", config::Node::quote(sweep.name));
  }
  return sweep;
}

}  // namespace millrace::app
