// Whether the results of one file are worse than those of another, beyond chance.
#pragma once

#include <string>
#include <vector>

#include "record/results.h"
#include "record/table_text.h"

namespace millrace::record {

struct ComparisonOptions {
  double significance = 0.05;  ///< probability of a false alarm over all tests together (Holm)
  double tolerance = 0.01;     ///< relative differences up to this are of no interest
};

enum class Difference { none, better, worse, untested };

/// One figure of one cell, or of a run.
struct ComparedFigure {
  std::string cell;
  std::string metric;
  double before = 0;  ///< means
  double after = 0;
  double p = 1;  ///< of the test; 0 where both are computed rather than measured
  Difference difference = Difference::none;
  std::string note;
};

/// Compares throughput (higher is better) and peak memory (lower is better) of the cells that both have, by their
/// identity without the repetition, else by their axes. Measured figures are samples (repetitions, or the iterations of
/// a run after the first two) for Welch's t-test; one value alone is not tested. Computed ones (simulated) are exact:
/// any difference beyond the tolerance counts. Kinds are never compared with each other. A cell that only the first has
/// a result of is worse.
std::vector<ComparedFigure> compare(const Results& before, const Results& after, const ComparisonOptions& options);

bool any_worse(const std::vector<ComparedFigure>& figures);

std::string name_of(Difference difference);
TextTable readable(const std::vector<ComparedFigure>& figures);

}  // namespace millrace::record
