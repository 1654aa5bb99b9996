// The partitioners that millrace ships, in the order in which `millrace partitioners` lists them.
#include "partitioners/registry.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "partitioners/data_parallel.h"
#include "partitioners/device_aware.h"
#include "partitioners/dp.h"
#include "partitioners/exact.h"
#include "partitioners/genetic.h"
#include "partitioners/hippie.h"
#include "partitioners/interleaved.h"
#include "partitioners/layer_equal.h"
#include "partitioners/local_search.h"
#include "partitioners/metis.h"
#include "partitioners/parameter_equal.h"
#include "partitioners/random.h"
#include "partitioners/scotch.h"
#include "partitioners/time_equal.h"

namespace millrace::partitioners {

namespace {

std::vector<Entry>& rows() {
  static std::vector<Entry> entries{
      {"dp", "dynamic program over topological and cluster orders; replicas, unequal devices, memory", dp_options(),
       kReplicas | kUnequalDevices | kMemoryLimit | kOptimalOnChains, dp},
      {"exact", "dynamic program over all down-closed sets of operators; the best plan of its class, proven",
       exact_options(), kReplicas | kUnequalDevices | kMemoryLimit | kOptimalOnChains | kProvesOptimum, exact},
      {"device_aware", "groups of devices of equal speed together, each a pipeline cut by capacity",
       device_aware_options(), kReplicas | kUnequalDevices | kMemoryLimit | kUnevenPipelines, device_aware},
      {"interleaved", "annealing of splits whose stages may share devices; objective max_load", interleaved_options(),
       kMemoryLimit | kSharedDevices, interleaved},
      {"genetic", "islands of random keys with local search, on all ranks of the job; any acyclic cut",
       genetic_options(), kUnequalDevices | kMemoryLimit | kAllRanks, genetic},
      {"local_search", "passes of single moves from several first cuts; any acyclic cut", local_search_options(),
       kUnequalDevices | kMemoryLimit, local_search},
      {"hippie", "dynamic program under caps on memory: most samples per second and byte", hippie_options(),
       kReplicas | kUnequalDevices | kMemoryLimit | kOptimalOnChains, hippie},
      {"data_parallel", "baseline: the whole model on every device, the batch split", {}, kBaseline, data_parallel},
      {"layer_equal", "baseline: equal numbers of layers per stage", {}, kBaseline, layer_equal},
      {"time_equal", "baseline: equal times per stage", {}, kBaseline, time_equal},
      {"parameter_equal", "baseline: equal parameter bytes per stage", {}, kBaseline, parameter_equal},
      {"random", "baseline: a random order cut at random places", {}, kBaseline, random},
      {"metis", "baseline: METIS on the undirected graph, its parts checked and repaired", metis_options(), kBaseline,
       metis},
      {"scotch", "baseline: Scotch on the undirected graph, its parts checked and repaired", scotch_options(),
       kBaseline, scotch},
  };
  return entries;
}

}  // namespace

const std::vector<Entry>& registry() { return rows(); }

void add(Entry entry) {
  for (const Entry& row : rows()) {
    if (row.name == entry.name) throw InvalidInput(fmt::format("partitioner '{}' is there already", entry.name));
  }
  rows().push_back(std::move(entry));
}

const Entry& by_name(std::string_view name) {
  const auto& entries = registry();
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == name; });
  if (found != entries.end()) return *found;
  std::vector<std::string> valid;
  for (const Entry& entry : entries) valid.push_back(entry.name);
  throw InvalidInput(unknown_name("partitioner", name, valid));
}

std::vector<std::string> capability_names(std::uint32_t capabilities) {
  static const std::vector<std::pair<Capability, std::string>> names{{kBaseline, "baseline"},
                                                                     {kReplicas, "replicas"},
                                                                     {kUnequalDevices, "unequal devices"},
                                                                     {kMemoryLimit, "memory limit"},
                                                                     {kOptimalOnChains, "optimal on chains"},
                                                                     {kSharedDevices, "shared devices"},
                                                                     {kAllRanks, "searches on all ranks"},
                                                                     {kProvesOptimum, "proves its optimum"},
                                                                     {kUnevenPipelines, "uneven pipelines"}};
  std::vector<std::string> result;
  for (const auto& item : names) {
    if ((capabilities & item.first) != 0) result.push_back(item.second);
  }
  return result;
}

}  // namespace millrace::partitioners
