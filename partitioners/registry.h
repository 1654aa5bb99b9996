// The partitioners by name: a row is everything that the command line, the YAML check, the documentation and the
// conformance tests need to know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/option.h"
#include "config/values.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// What a partitioner can do; a set of bits.
enum Capability : std::uint32_t {
  kBaseline = 1,          ///< for comparison
  kReplicas = 2,          ///< chooses how many replicas each stage has
  kUnequalDevices = 4,    ///< cuts by the speed of each device
  kMemoryLimit = 8,       ///< looks for cuts that fit
  kOptimalOnChains = 16,  ///< its cuts are the best by closed form on chains whose cut points it tries one by one
  kSharedDevices = 32,    ///< a device may have several stages: only objectives that know such plans are offered
  kAllRanks = 64,         ///< the ranks of a job search together (Problem::exchange)
  kProvesOptimum = 128,   ///< the best plan of its class, where it searched to the end, with a certificate
  kUnevenPipelines = 256  ///< pipelines may have different numbers of devices
};

/// "baseline", "replicas", …
std::vector<std::string> capability_names(std::uint32_t capabilities);

/// A pure function: the same problem and options give the same plans, unless a time limit stops it.
using Partition = plan::PlanSet (*)(const plan::Problem&, const config::Values& options, plan::Evaluator&);

struct Entry {
  std::string name;
  std::string description;
  config::Options options;
  std::uint32_t capabilities = 0;
  Partition partition = nullptr;
};

/// All partitioners, in the order in which they are listed.
const std::vector<Entry>& registry();

/// Adds a row from outside the tree (planner/plugin.h). \throws InvalidInput  when the name is there already.
void add(Entry entry);

/// \throws InvalidInput  with the nearest and all valid names.
const Entry& by_name(std::string_view name);

}  // namespace millrace::partitioners
