// Published measurements of training steps: one row a run, with everything that is known of how it ran.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/step_prediction.h"

namespace millrace::planner {

/// One row of such a file. Columns are those of data/measured_steps.csv.
struct MeasuredStep {
  std::string id, set, model, gpu;
  std::string where;  ///< "file:line" of the row
  Layout layout;
  OpenChoices open;
  bool calibration = false;                ///< a constant was fitted to it: no error is reported for it
  std::optional<double> time_s;            ///< of one iteration
  std::optional<double> activation_bytes;  ///< of a device
  std::string why_not;                     ///< not empty: the row says too little to be predicted

  /// Operations of one iteration as Narayanan et al. 2021 count them, recomputation included.
  double flops() const;
};

/// Reads rows. What a row leaves blank: vocabulary 51,200; micro-batch, virtual stages and recomputation are open.
/// Rows of activation memory that name only a model of Korthikanti et al. 2022 lie as there (table 3).
/// \throws InvalidInput  every missing column, every cell that is no such value and every layout that does not multiply
///                       up, with file, line, column and name; a file without rows.
std::vector<MeasuredStep> read_measured_steps(const std::filesystem::path& file);

}  // namespace millrace::planner
