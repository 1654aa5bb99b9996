// A sweep's cell that trains: a job of its own under mpirun.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/cell_work.h"

namespace millrace::app {

/// Starts `mpirun -n RANKS millrace run` on the cell's experiment, which is written into the task's folder with its
/// results file and what the job said, and reads back what came of it. Like work_on().
/// \throws SystemError  when mpirun cannot be started.
nlohmann::json run_cell(const CellTask& task);

}  // namespace millrace::app
