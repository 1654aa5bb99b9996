// A sweep's cell that trains: a job of its own under mpirun.
#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

#include "app/cell_work.h"

namespace millrace::app {

/// Starts `mpirun -n RANKS millrace run` on the cell's experiment, which is written into the task's folder with its
/// results file and what the job said, and reads back what came of it. Like work_on().
/// \throws SystemError  when mpirun cannot be started.
nlohmann::json run_cell(const CellTask& task);

/// Starts `mpirun -n RANKS millrace profile` on the cell's experiment. Returns the profile's file, in the task's
/// folder. \throws Error  what the job said when it failed; SystemError  when mpirun cannot be started.
std::filesystem::path profile_cell(const CellTask& task);

}  // namespace millrace::app
