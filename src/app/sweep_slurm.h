// A sweep as Slurm job arrays: scripts are written and submitted, each task works on one cell and leaves one file, and
// a last job merges them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "app/cell_work.h"
#include "base/errors.h"

namespace millrace::app {

/// A word of a shell's command line, whatever it holds.
std::string quoted_word(const std::string& word);

/// Scripts, tasks and results of cells: DIR/NAME.slurm.
std::filesystem::path slurm_folder(const Arguments& arguments, const std::string& sweep);

/// Writes `tasks.jsonl` with a line for each task, one array script for every `--max-array` of them (the site's
/// MaxArraySize where that is less) and `merge.sbatch`, and submits them with sbatch, each array after the one before,
/// so that no more than `--throttle` cells run at once. What is merged is what `again` says, the words of this very
/// sweep. \param ranks  of the largest cell that trains; 1 where none does. \returns ids of the jobs, the merging one
/// last. \throws Error  (code 4) when sbatch refuses; it names the cells that were not submitted.
std::vector<std::string> submit_sweep(const Arguments& arguments, const std::string& sweep, int ranks,
                                      const std::vector<CellTask>& tasks, const std::string& again);

/// `--cell N` of a file of tasks: works on it and leaves its document beside the file, as CELL.json.
ExitCode work_on_listed(const Arguments& arguments);

}  // namespace millrace::app
