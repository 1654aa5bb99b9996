// Reads the summary of a run, and divides by it.
#include "app/baseline.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "record/results.h"
#include "storage/file.h"

namespace millrace::app {

Baseline read_baseline(const std::filesystem::path& path, const std::string& kind) {
  const storage::File file = storage::File::open(path);
  if (!file.contains("iterations")) {
    throw InvalidInput(fmt::format("--baseline: {}: holds no results of a run", path.string()));
  }
  const std::string status = record::status_of(path);
  if (status != "complete" || !file.contains("summary")) {
    throw InvalidInput(fmt::format("--baseline: {}: that run is not complete, but {}", path.string(), status));
  }
  const std::string its = file.text("kind");
  if (its != kind) {
    throw InvalidInput(
        fmt::format("--baseline: {}: is {}, this run is {}: they are not compared", path.string(), its, kind));
  }
  return {std::filesystem::absolute(path).string(), file.group("summary").real("throughput_samples_per_s"),
          file.integer("devices")};
}

std::vector<record::Fact> speed_up_facts(const Baseline& baseline, double throughput_samples_per_s,
                                         std::int64_t devices) {
  const double speed_up = throughput_samples_per_s / baseline.throughput_samples_per_s;
  return {{"speed_up", speed_up},
          {"scaling_efficiency", speed_up * static_cast<double>(baseline.devices) / static_cast<double>(devices)},
          {"baseline", baseline.file}};
}

}  // namespace millrace::app
