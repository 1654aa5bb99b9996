// The file that `millrace sweep` takes (INTERFACES 2): an experiment and how its cells vary it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "config/matrix.h"
#include "config/node.h"
#include "config/problems.h"

namespace millrace::app {

enum class CellCommand { plan, simulate, run };

/// What a cell may take before it is ended.
struct CellLimits {
  std::optional<Seconds> time;
  std::optional<Bytes> memory;  ///< address space of its process
};

struct SweepFile {
  std::string name;
  CellCommand command = CellCommand::plan;
  config::Node base;  ///< the experiment that cells vary
  config::Matrix matrix;
  int repetitions = 1;
  CellLimits limits;
  std::optional<std::filesystem::path> published;  ///< rows to print beside ours
  std::vector<std::filesystem::path> inputs;       ///< every file that was read, to be left alone
};

/// "plan", "simulate", "run".
std::string name_of(CellCommand command);

/// Reads the file and its base. `sets` change the base, before the cells do.
/// \throws InvalidInput  all that is wrong with the keys of both, unless it is the experiment's own.
SweepFile read_sweep_file(const std::filesystem::path& file, const std::vector<std::string>& sets);

}  // namespace millrace::app
