// One cell of a sweep, as a text that any process can work on and the result that comes back.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/sweep_file.h"

namespace millrace::app {

/// What a worker needs to know.
struct CellTask {
  CellCommand command = CellCommand::plan;
  std::string effective;  ///< the experiment, YAML
  int ranks = 1;
  std::optional<double> time_limit_s;  ///< of each partitioner
  CellLimits limits;
  std::string folder;  ///< run: where its files are kept
  std::string id;
};

std::string to_text(const CellTask& task);
CellTask cell_task_from_text(const std::string& text);

/// Plans, simulates or runs the cell. `{status, reason, kind}`, and where status is "done" `result` with the figures of
/// INTERFACES 3, the stages without their operators' names, and `plan`, the plan as a file. Statuses: done, infeasible,
/// memory, timeout, error.
/// \throws Error  what is wrong with the cell itself.
nlohmann::json work_on(const CellTask& task);

/// A cell that came to nothing.
nlohmann::json failed_cell(const std::string& status, const std::string& reason);

}  // namespace millrace::app
