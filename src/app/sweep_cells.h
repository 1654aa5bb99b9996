// The cells of a sweep: each a whole experiment with an identity of its own.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/arguments.h"
#include "app/sweep_file.h"

namespace millrace::app {

struct SweepCell {
  std::string id;  ///< see cell_id()
  int repetition = 1;
  int ranks = 1;                      ///< that run it; the devices of its cluster
  std::string effective;              ///< the experiment, YAML
  std::vector<std::string> settings;  ///< by axis, on one line; "" where the cell leaves the base's value
  double expected_s = 0;              ///< a guess of the time that it takes one core
  std::string misfit;                 ///< why no plan can ever fit, known before any search; "" where one may
};

struct Suite {
  std::vector<std::string> axes;  ///< key paths
  std::vector<SweepCell> cells;
  /// By exclusion, and for cells that are the same as another: the reason, how many combinations.
  std::vector<std::pair<std::string, std::int64_t>> excluded;
};

/// First 12 hexadecimal digits of the XXH3-128 of the canonical JSON (keys sorted, no blanks) of the effective
/// configuration without `name` and `output`, plus `repetition`; for the ranks of a job also plus `ranks`, which no key
/// of an experiment says.
std::string cell_id(const std::string& effective, int repetition, std::optional<int> ranks);

/// Expands the sweep and reads every cell as an experiment, with its graph, so that nothing is found wrong hours later.
/// \param arguments  for --ranks and --time-limit.
/// Of cells that are the same experiment the first one is kept.
/// \throws InvalidInput  everything that is wrong with any cell, each thing once; an exclusion that leaves out nothing;
///   cells of which none can ever fit.
Suite make_suite(const SweepFile& sweep, const Arguments& arguments);

}  // namespace millrace::app
