// The run that another run's speed-up is against: `run --baseline RESULTS.h5`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "record/results_file.h"

namespace millrace::app {

struct Baseline {
  std::string file;
  double throughput_samples_per_s = 0;
  std::int64_t devices = 1;
};

/// \param kind  of the run that is to be held against it: measured, emulated, oversubscribed.
/// \throws InvalidInput  no results of a complete run, or of one of another kind.
Baseline read_baseline(const std::filesystem::path& file, const std::string& kind);

/// speed_up; scaling_efficiency, which is that over the ratio of devices; baseline, the file.
std::vector<record::Fact> speed_up_facts(const Baseline& baseline, double throughput_samples_per_s,
                                         std::int64_t devices);

}  // namespace millrace::app
