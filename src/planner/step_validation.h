// Predictions of all rows of a file of measured training steps, and their errors by set.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "planner/measured_steps.h"
#include "planner/prediction_error.h"

namespace millrace::planner {

/// The machine of a row by its column `gpu`. \throws InvalidInput  when it knows none.
using ClusterOfRow = std::function<const cluster::Cluster&(const MeasuredStep&)>;

struct SetErrors {
  std::string set;
  int calibration = 0;  ///< rows left out of the errors: constants were fitted to them
  std::vector<ErrorSample> samples;
  ErrorSummary summary;
};

struct SkippedRow {
  std::string id, why;
};

struct Validation {
  std::vector<SetErrors> sets;  ///< in the order of the file
  std::vector<SkippedRow> skipped;
};

/// Predicts every row. Rows with profiled times are predicted twice: from them, and in the set `…_unprofiled` from the
/// model alone. Rows of activation memory are compared by bytes; the others by time.
Validation validate_predictions(const std::vector<MeasuredStep>& rows, const ClusterOfRow& cluster_of);

}  // namespace millrace::planner
