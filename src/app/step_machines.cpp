// Tells machines by parts of the name of their device.
#include "app/step_machines.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "app/shipped_clusters.h"
#include "base/errors.h"
#include "cluster/cluster_file.h"
#include "config/problems.h"

namespace millrace::app {
namespace {

struct Machine {
  const char* in_gpu;
  const char* cluster;
};

// The first that fits.
constexpr Machine kMachines[] = {{"Selene", "a100x8-selene"}, {"RoCE", "a100x8-roce"},  {"B200", "b200x8-4nodes"},
                                 {"H200", "h200x8-4nodes"},   {"H100", "h100x8-eos"},   {"A100", "a100x8-800g"},
                                 {"V100", "v100x8-fp16-10g"}, {"P100", "p100x8-4nodes"}};

}  // namespace

const cluster::Cluster& StepMachines::of(const planner::MeasuredStep& row) {
  for (const Machine& machine : kMachines) {
    if (row.gpu.find(machine.in_gpu) == std::string::npos) continue;
    const auto known = loaded_.find(machine.cluster);
    return known != loaded_.end() ? known->second : load(machine.cluster);
  }
  throw InvalidInput(
      fmt::format("{}: gpu: no machine is known for '{}', allowed: a name with V100, P100, A100, H100, "
                  "H200 or B200 in it",
                  row.where, row.gpu));
}

const cluster::Cluster& StepMachines::load(const std::string& name) {
  const auto file = shipped_cluster(name);
  if (!file) throw InvalidInput(fmt::format("the cluster file {}.yaml is not there", name));
  config::Problems problems;
  std::optional<cluster::Cluster> read = cluster::load_cluster(*file, problems);
  problems.throw_if_any();
  return loaded_.emplace(name, std::move(*read)).first->second;
}

}  // namespace millrace::app
