// The schedules that millrace ships, in the order in which `millrace schedules` lists them.
#include "schedules/registry.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "schedules/chimera.h"
#include "schedules/gpipe.h"
#include "schedules/hippie.h"
#include "schedules/interleaved.h"
#include "schedules/one_f_one_b.h"
#include "schedules/pipedream.h"
#include "schedules/pipedream_2bw.h"
#include "schedules/zb_greedy.h"
#include "schedules/zb_h1.h"
#include "schedules/zb_h2.h"
#include "schedules/zb_v.h"

namespace millrace::schedules {

namespace {

// What lowering does for any order that flushes.
Entry with_common_options(Entry entry) {
  if ((entry.capabilities & kSynchronous) != 0) {
    entry.options.push_back({kDeferredWeights,
                             "weight gradients of so many last micro-batches run at the end, layer by layer, so that "
                             "their reductions are hidden",
                             config::Integer{0, 1 << 20}, "0"});
  }
  return entry;
}

std::vector<Entry> own_rows() {
  std::vector<Entry> entries{
      {"gpipe", "all forwards, then all backwards; keeps every micro-batch", {}, kSynchronous, gpipe},
      {"1f1b",
       "warm-up forwards, then forward and backward in turn; keeps as many micro-batches as stages follow",
       {},
       kSynchronous | kTakesWarmup,
       one_f_one_b},
      {"hippie", "as gpipe, but the last stage turns every micro-batch round at once", hippie_options(),
       kSynchronous | kTakesWarmup, hippie},
      {"interleaved", "1F1B over several chunks a device, dealt in turn; a smaller bubble for more messages",
       interleaved_options(), kSynchronous, interleaved, Placement::in_turn},
      {"zb-h1",
       "1F1B with weight gradients apart: they fill the drain, at the memory of 1F1B",
       {},
       kSynchronous | kTakesWarmup | kSplitsBackward,
       zb_h1},
      {"zb-h2",
       "weight gradients apart and twice the warm-up: no bubble, at twice the memory",
       {},
       kSynchronous | kSplitsBackward | kPostValidates,
       zb_h2},
      {"zb-v", "two chunks a device in a V, backwards split: hardly a bubble at the memory of 1F1B", zb_v_options(),
       kSynchronous | kSplitsBackward | kFitsCosts, zb_v, Placement::vee},
      {"chimera",
       "two pipelines in opposite directions over the same devices, each with its copy of the weights",
       {},
       kSynchronous | kFitsCosts,
       chimera,
       Placement::both_ways},
      {"pipedream",
       "1F1B that never flushes: an update per micro-batch, backwards with the weights of their forwards",
       {},
       kTakesWarmup,
       pipedream},
      {"pipedream-2bw",
       "1F1B that never flushes: an update per iteration, two versions of the weights",
       {},
       kTakesWarmup,
       pipedream_2bw},
      {"zb-greedy",
       "list scheduling of split backwards for unequal stages, communication and memory limits; best of many rules",
       zb_greedy_options(), kSynchronous | kSplitsBackward | kFitsCosts, zb_greedy},
  };
  for (Entry& entry : entries) entry = with_common_options(std::move(entry));
  return entries;
}

std::vector<Entry>& rows() {
  static std::vector<Entry> entries = own_rows();
  return entries;
}

}  // namespace

const std::vector<Entry>& registry() { return rows(); }

void add(Entry entry) {
  for (const Entry& row : rows()) {
    if (row.name == entry.name) throw InvalidInput(fmt::format("schedule '{}' is there already", entry.name));
  }
  rows().push_back(with_common_options(std::move(entry)));
}

std::vector<std::string> capability_names(std::uint32_t capabilities) {
  std::vector<std::string> names;
  if (capabilities & kSynchronous) names.emplace_back("synchronous");
  if (capabilities & kTakesWarmup) names.emplace_back("takes_warmup");
  if (capabilities & kSplitsBackward) names.emplace_back("splits_backward");
  if (capabilities & kFitsCosts) names.emplace_back("fits_costs");
  if (capabilities & kPostValidates) names.emplace_back("post_validates");
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

config::Values option_values(const Entry& entry, const std::map<std::string, std::string>& written) {
  config::Values values = config::defaults(entry.options);
  for (const auto& [name, text] : written) {
    std::vector<std::string> names;
    for (const config::Option& option : entry.options) names.push_back(option.name);
    const auto option = std::find(names.begin(), names.end(), name);
    if (option == names.end()) throw InvalidInput(unknown_name("option of schedule " + entry.name, name, names));
    const auto index = static_cast<std::size_t>(option - names.begin());
    try {
      values.set(name, config::parse_value(entry.options[index].type, text));
    } catch (const InvalidInput& error) {
      throw InvalidInput(fmt::format("option '{}' of schedule {}: {}", name, entry.name, error.what()));
    }
  }
  return values;
}

ComputeOrder compute_order(const Plan& plan, const StageDag& dag, const StageCosts& costs) {
  const Entry& entry = by_name(plan.schedule);
  const config::Values options = option_values(entry, plan.schedule_options);
  ComputeOrder order = entry.order(plan, dag, costs, options);
  if (options.has(kDeferredWeights)) order.defer_weights(options.integer(kDeferredWeights));
  return order;
}

}  // namespace millrace::schedules
