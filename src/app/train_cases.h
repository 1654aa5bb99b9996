// The list that `millrace bench train` runs: experiments, and the peer's words for the same training.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/experiment.h"

namespace millrace::app {

struct TrainCase {
  std::string name;
  int ranks = 1;
  std::string peer;  ///< what follows the peer's program on its command line; empty: it has no such case
  Experiment experiment;
};

/// Reads `bench: train` with its `rows:`. \throws InvalidInput  all that is wrong with the list and its experiments.
std::vector<TrainCase> read_train_cases(const std::filesystem::path& file);

}  // namespace millrace::app
