// The file that `millrace sweep` takes (INTERFACES 2): an experiment and how its cells vary it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "app/bench_list.h"
#include "base/units.h"
#include "config/matrix.h"
#include "config/node.h"
#include "config/problems.h"

namespace millrace::app {

enum class CellCommand { plan, simulate, run, predict };

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
  std::string published;                      ///< figures to print beside ours, CSV; "" if none
  std::vector<BenchCase> cases;               ///< of a list of workloads, which has neither base nor matrix
  std::filesystem::path steps;                ///< predict: measured training steps
  std::vector<std::filesystem::path> inputs;  ///< every file that was read, to be left alone
};

/// "plan", "simulate", "run", "predict".
std::string name_of(CellCommand command);

/// The sweeps that a file stands for: itself, or those that it names under `sweeps`.
std::vector<std::filesystem::path> sweeps_of(const std::filesystem::path& file);

/// Reads the file and its base, or a list of workloads (see bench_list.h). `--set`s change the base, before the cells
/// do. \throws InvalidInput  all that is wrong with the keys of both, unless it is the experiment's own.
SweepFile read_sweep_file(const std::filesystem::path& file, const Arguments& arguments);

}  // namespace millrace::app
