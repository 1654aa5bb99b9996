// The list that `millrace bench planner` runs: experiments in short form, with the partitioners to compare on each and
// what others reached.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "config/node.h"

namespace millrace::app {

/// One workload and one partitioner.
struct BenchCase {
  std::string workload;
  std::string partitioner;
  config::Node experiment;               ///< a whole experiment, `plan.partitioner` set
  std::optional<double> published;       ///< in the unit of the objective
  std::optional<Seconds> published_cpu;  ///< CPU time of the published planner
  std::string absent;                    ///< what the workload needs and where it was looked for; empty: all is there
};

/// Reads `bench: planner` with its `rows:`. Files of models are looked up in `workloads` first, then as experiments
/// look them up; a case whose file is nowhere says so in `absent`. \throws InvalidInput  all that is wrong with the
/// list and with its experiments.
std::vector<BenchCase> read_bench_list(const std::filesystem::path& file, const std::filesystem::path& workloads);

}  // namespace millrace::app
