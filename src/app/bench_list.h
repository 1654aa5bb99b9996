// The list that `millrace bench planner` runs: experiments in short form, with the partitioners to compare on each and
// what others reached.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "config/matrix.h"
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

struct BenchList {
  std::vector<BenchCase> cases;
  // What `millrace sweep` does with a list beside planning its cases:
  std::string sweep;                               ///< names the results; the file's stem if not given
  std::optional<std::filesystem::path> published;  ///< figures to print beside ours, besides those of the rows
  config::Settings small;                          ///< what a case of the small size has: workload, plan.partitioner
  std::string table;                               ///< number of the published table; the name if not given
  std::string source;                              ///< of the rows' published figures
  std::string why;                                 ///< why ours differ from them, where they do
};

/// Reads `bench: planner` with its `rows:`. Files of models are looked up in `workloads` first, then as experiments
/// look them up; a case whose file is nowhere says so in `absent`. \throws InvalidInput  all that is wrong with the
/// list and with its experiments.
BenchList read_bench_list(const std::filesystem::path& file, const std::filesystem::path& workloads);

/// The folder that `--workloads` or MILLRACE_WORKLOADS names, else the one beside the source tree, which need not be
/// there. \param typed  of the command line; empty: nothing. \throws InvalidInput  a named folder that is not there.
std::filesystem::path workloads_folder(const std::string& typed);

}  // namespace millrace::app
