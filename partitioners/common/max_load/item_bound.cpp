// Minimum cuts for the items whose own work and transfers are largest, until the rest cannot raise the bound.
#include "partitioners/common/max_load/item_bound.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/limits.h"
#include "partitioners/common/max_load/max_flow.h"

namespace millrace::partitioners::max_load {
namespace {

constexpr std::size_t kMostEdges = 20'000'000;  // looked at, if each cut looked at every edge once

// Items at 0 … n−1, the sink, then two vertices for each transfer: an item on the source's side pays its compute to the
// sink; a transfer with ends on both sides is cut once, in its middle.
FlowNetwork network(const Model& model) {
  const std::size_t n = model.size();
  FlowNetwork network(n + 1 + 2 * model.transfers.size());
  for (Item item = 0; item < n; ++item) network.add_edge(item, n, model.accelerator_s[item]);
  for (std::size_t t = 0; t < model.transfers.size(); ++t) {
    const Transfer& transfer = model.transfers[t];
    const std::size_t in = n + 1 + 2 * t, out = in + 1;
    network.add_edge(in, out, transfer.seconds);
    network.add_edge(transfer.from, in, kNever);
    network.add_edge(out, transfer.from, kNever);
    for (const Item reader : transfer.to) {
      network.add_edge(reader, in, kNever);
      network.add_edge(out, reader, kNever);
    }
  }
  return network;
}

// Alone on a device: the bound for the item is at most that.
std::vector<double> loads_alone(const Model& model) {
  bool accelerators = false, cores = false;
  for (const DeviceKind& kind : model.kinds) (kind.cpu ? cores : accelerators) = true;
  std::vector<double> alone(model.size(), kNever);
  for (Item item = 0; item < model.size(); ++item) {
    double transfers = 0;
    for (const std::size_t t : model.touching[item]) transfers += model.transfers[t].seconds;
    if (accelerators) alone[item] = model.accelerator_s[item] + transfers;
    if (cores) alone[item] = std::min(alone[item], model.cpu_s[item]);
  }
  return alone;
}

}  // namespace

double item_bound(const Model& model, double enough, std::chrono::steady_clock::time_point deadline) {
  const std::vector<double> alone = loads_alone(model);
  std::vector<Item> items;
  for (Item item = 0; item < model.size(); ++item) items.push_back(item);
  std::stable_sort(items.begin(), items.end(), [&](Item a, Item b) { return alone[a] > alone[b]; });
  bool accelerators = false, cores = false;
  for (const DeviceKind& kind : model.kinds) (kind.cpu ? cores : accelerators) = true;
  FlowNetwork flow = network(model);
  std::size_t edges = model.size();
  for (const Transfer& transfer : model.transfers) edges += 3 + 2 * transfer.to.size();
  if (items.size() > kMostEdges / edges + 1) items.resize(kMostEdges / edges + 1);
  double bound = 0;
  for (const Item item : items) {
    if (alone[item] <= bound || bound >= enough || std::chrono::steady_clock::now() > deadline) break;
    double least = accelerators ? flow.max_flow(item, model.size(), enough) : kNever;
    if (cores) least = std::min(least, model.cpu_s[item]);
    bound = std::max(bound, least);
  }
  return bound;
}

}  // namespace millrace::partitioners::max_load
