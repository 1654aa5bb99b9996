// Reads a sweep file with its base experiment.
#include "app/sweep_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/experiment.h"
#include "base/errors.h"
#include "config/document.h"
#include "config/reader.h"
#include "config/set.h"

namespace millrace::app {
namespace {

const std::vector<std::string>& command_names() {
  static const std::vector<std::string> names{"plan", "simulate", "run"};  // in the order of CellCommand
  return names;
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
  const std::filesystem::path file = field.input_file();
  if (file.empty()) return config::Node::map();
  sweep.inputs.push_back(file);
  return config::load_file(file, problems);
}

}  // namespace

std::string name_of(CellCommand command) { return command_names()[static_cast<std::size_t>(command)]; }

SweepFile read_sweep_file(const std::filesystem::path& file, const std::vector<std::string>& sets) {
  config::Problems problems;
  const config::Node root = config::load_file(file, problems);
  if (root.find("sweep") == nullptr && root.find("model") != nullptr) {
    throw InvalidInput(fmt::format("{}: this is one experiment; a sweep names it: base: {}, and has a matrix",
                                   file.string(), file.filename().string()));
  }
  SweepFile sweep;
  sweep.inputs.push_back(file);
  {
    config::Reader reader(root, problems);
    const config::Field name = reader.field("sweep");
    sweep.name = name.as(config::Text{});
    if (name && (sweep.name.empty() || sweep.name.find('/') != std::string::npos)) {
      name.refuse("found no plain name; allowed: a name without '/': it names the results files");
    }
    const std::string command = reader.get("command", config::OneOf{command_names()}, "plan");
    const auto& names = command_names();
    const auto known = std::find(names.begin(), names.end(), command);
    if (known != names.end()) sweep.command = static_cast<CellCommand>(known - names.begin());
    sweep.base = read_base(reader.field("base"), sweep, problems);
    sweep.matrix = config::read_matrix(reader);
    sweep.repetitions = static_cast<int>(reader.get("repetitions", config::Integer{1, 10000}, 1));
    sweep.limits = read_limits(reader.field("limits"));
    if (const config::Field published = reader.field("published")) {
      sweep.published = published.input_file();
      sweep.inputs.push_back(*sweep.published);
    }
  }
  for (const std::string& set : sets) config::apply_set(sweep.base, set, experiment_short_forms(), problems);
  problems.throw_if_any();
  if (sweep.base.find("name") == nullptr) sweep.base.add("name", config::Node::quote(sweep.name));
  return sweep;
}

}  // namespace millrace::app
