// Makes items of layers and adds their figures up over prefixes.
#include "partitioners/common/pipedream/layer_network.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "partitioners/common/pipedream/merging.h"

namespace millrace::partitioners {
namespace {

constexpr int kNone = -1;

void sort_once(std::vector<int>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// Groups of layers become items, numbered by their first layers.
void number_items(LayerNetwork& network, const std::vector<int>& groups) {
  std::vector<int> number(groups.size(), kNone);
  network.item_of.assign(groups.size(), kNone);
  for (std::size_t op = 0; op < groups.size(); ++op) {
    if (groups[op] == kNone) continue;
    int& item = number[at(groups[op])];
    if (item == kNone) {
      item = static_cast<int>(network.items.size());
      network.items.emplace_back();
    }
    network.item_of[op] = item;
  }
}

void add_edges(LayerNetwork& network, const plan::LayerFigures& layers) {
  network.readers.resize(network.items.size());
  for (std::size_t op = 0; op < network.item_of.size(); ++op) {
    const int from = network.item_of[op];
    if (from == kNone) continue;
    network.items[at(from)].seconds += layers.seconds[op];
    network.items[at(from)].parameter_bytes += layers.parameter_bytes[op];
    network.items[at(from)].activation_bytes += layers.output_bytes[op];
    LayerNetwork::Transfer transfer{.from = from, .bytes = layers.output_bytes[op]};
    for (const OpId reader : layers.readers[op]) {
      if (network.item_of[at(reader)] != from) transfer.to.push_back(network.item_of[at(reader)]);
    }
    sort_once(transfer.to);
    std::vector<int>& readers = network.readers[at(from)];
    readers.insert(readers.end(), transfer.to.begin(), transfer.to.end());
    if (!transfer.to.empty() && transfer.bytes > 0) network.transfers.push_back(std::move(transfer));
  }
  for (std::vector<int>& readers : network.readers) sort_once(readers);
}

// Bytes that cross after each length of an order.
std::vector<double> crossing_along(const LayerNetwork& network, std::span<const int> order) {
  std::vector<std::size_t> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[at(order[i])] = i;
  std::vector<double> change(order.size() + 1, 0);
  for (const LayerNetwork::Transfer& transfer : network.transfers) {
    std::size_t last = 0;
    for (const int reader : transfer.to) last = std::max(last, position[at(reader)]);
    change[position[at(transfer.from)] + 1] += transfer.bytes;
    change[last + 1] -= transfer.bytes;
  }
  for (std::size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
  return change;
}

}  // namespace

LayerNetwork layer_network(const plan::LayerFigures& layers, Merge merge, bool keeps_activations) {
  LayerNetwork network;
  if (merge == Merge::free_layers) {
    const MergedLayers merged = merge_free_layers(layers, keeps_activations);
    network.idle = merged.idle;
    number_items(network, merged.group);
  } else {
    std::vector<int> groups(layers.seconds.size(), kNone);
    for (std::size_t op = 0; op < groups.size(); ++op) {
      if (!layers.is_input[op]) groups[op] = static_cast<int>(op);
    }
    number_items(network, groups);
  }
  add_edges(network, layers);
  return network;
}

std::vector<std::vector<OpId>> stage_ops(const LayerNetwork& network, const plan::LayerFigures& layers,
                                         std::span<const int> stage_of_item) {
  std::vector<int> stage_of(network.item_of.size(), 0);
  int last = 0;
  // Operators are in topological order: backwards, readers have their stages before those that they read.
  for (std::size_t op = stage_of.size(); op-- > 0;) {
    if (network.item_of[op] != kNone) {
      stage_of[op] = stage_of_item[at(network.item_of[op])];
    } else if (static_cast<OpId>(op) != network.idle && !layers.readers[op].empty()) {
      stage_of[op] = stage_of[at(layers.readers[op][0])];
      for (const OpId reader : layers.readers[op]) stage_of[op] = std::min(stage_of[op], stage_of[at(reader)]);
    }
    last = std::max(last, stage_of[op]);
  }
  std::vector<std::vector<OpId>> stages(at(last) + 1);
  for (std::size_t op = 0; op < stage_of.size(); ++op) stages[at(stage_of[op])].push_back(static_cast<OpId>(op));
  return stages;
}

PrefixFigures prefix_figures(const LayerNetwork& network, const Prefixes& prefixes) {
  PrefixFigures figures;
  for (auto* list : {&figures.seconds, &figures.parameter_bytes, &figures.activation_bytes, &figures.crossing_bytes}) {
    list->assign(prefixes.size(), 0);
  }
  for (std::size_t p = 0; p < prefixes.size(); ++p) {
    for (std::size_t item = 0; item < network.items.size(); ++item) {
      if (!prefixes.has(p, static_cast<int>(item))) continue;
      figures.seconds[p] += network.items[item].seconds;
      figures.parameter_bytes[p] += network.items[item].parameter_bytes;
      figures.activation_bytes[p] += network.items[item].activation_bytes;
    }
    for (const LayerNetwork::Transfer& transfer : network.transfers) {
      const auto outside = [&](int reader) { return !prefixes.has(p, reader); };
      if (!prefixes.has(p, transfer.from) || !std::any_of(transfer.to.begin(), transfer.to.end(), outside)) continue;
      figures.crossing_bytes[p] += transfer.bytes;
    }
  }
  return figures;
}

Prefixes cheapest_prefixes(const LayerNetwork& network, std::span<const int> order, std::size_t most) {
  std::vector<std::size_t> cuts{0};
  const std::vector<double> crossing = crossing_along(network, order);
  double total = 0, done = 0;
  for (const LayerNetwork::Item& item : network.items) total += item.seconds;
  const auto parts = static_cast<double>(most);
  double part = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    done += network.items[at(order[i - 1])].seconds;
    const double now = order.size() <= most ? static_cast<double>(i) : std::floor(total > 0 ? done / total * parts : 0);
    const bool same_part = cuts.size() > 1 && now == part;
    part = now;
    if (!same_part) {
      cuts.push_back(i);
    } else if (crossing[i] < crossing[cuts.back()]) {
      cuts.back() = i;
    }
  }
  cuts.push_back(order.size());
  return Prefixes::of_order(order, cuts);
}

}  // namespace millrace::partitioners
