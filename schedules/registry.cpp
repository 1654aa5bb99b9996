// The schedules that millrace ships, in the order in which `millrace schedules` lists them.
#include "schedules/registry.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "schedules/gpipe.h"
#include "schedules/one_f_one_b.h"

namespace millrace::schedules {

namespace {

std::vector<Entry>& rows() {
  static std::vector<Entry> entries{
      {"gpipe", "all forwards, then all backwards; keeps every micro-batch", {}, kSynchronous, gpipe},
      {"1f1b",
       "warm-up forwards, then forward and backward in turn; keeps as many micro-batches as stages follow",
       {},
       kSynchronous | kTakesWarmup,
       one_f_one_b},
  };
  return entries;
}

}  // namespace

const std::vector<Entry>& registry() { return rows(); }

void add(Entry entry) {
  for (const Entry& row : rows()) {
    if (row.name == entry.name) throw InvalidInput(fmt::format("schedule '{}' is there already", entry.name));
  }
  rows().push_back(std::move(entry));
}

std::vector<std::string> capability_names(std::uint32_t capabilities) {
  std::vector<std::string> names;
  if (capabilities & kSynchronous) names.emplace_back("synchronous");
  if (capabilities & kTakesWarmup) names.emplace_back("takes_warmup");
  if (capabilities & kSplitsBackward) names.emplace_back("splits_backward");
  return names;
}

const Entry& by_name(std::string_view name) {
  std::vector<std::string> names;
  for (const Entry& entry : registry()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw InvalidInput(unknown_name("schedule", name, names));
}

ComputeOrder compute_order(const Plan& plan, const StageDag& dag, const StageCosts& costs) {
  const Entry& entry = by_name(plan.schedule);
  return entry.order(plan, dag, costs, config::defaults(entry.options));
}

}  // namespace millrace::schedules
