// The list that `millrace bench train` runs: experiments, and the peer's words for the same training.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/experiment.h"

namespace millrace::app {

struct TrainCase {
  std::string name;
  int ranks = 1;
  std::string peer;            ///< what follows the peer's program on its command line; empty: it has no such case
  std::optional<double> goal;  ///< the ratio of speeds to be reached against the peer
  std::optional<double> memory_goal;  ///< the ratio of memory not to be exceeded
  Experiment experiment;
};

/// Reads `bench: train` with its `rows:`. \throws InvalidInput  all that is wrong with the list and its experiments.
std::vector<TrainCase> read_train_cases(const std::filesystem::path& file);

}  // namespace millrace::app
