// A profile's layers as items to cut between, for the searches of PipeDream's and DAPPLE's objectives.
#pragma once

#include <span>
#include <vector>

#include "partitioners/common/prefixes.h"
#include "plan/plan.h"
#include "plan/published/layer_profile.h"

namespace millrace::partitioners {

/// Whether layers that cost nothing are items of their own.
enum class Merge {
  none,
  /// Layers without time and parameters join their only producer or reader wherever that makes no border dearer; those
  /// that read and send nothing are in no item. Loses only plans that park devices on a stage without any cost.
  free_layers
};

/// Inputs are in no item.
struct LayerNetwork {
  struct Item {
    double seconds = 0;
    double parameter_bytes = 0;
    double activation_bytes = 0;
  };
  /// Output of a layer that other items read; crosses a border once however many read it.
  struct Transfer {
    int from = 0;
    std::vector<int> to{};  ///< ascending
    double bytes = 0;
  };
  std::vector<Item> items;
  ItemGraph readers;
  std::vector<Transfer> transfers;
  std::vector<int> item_of;  ///< by operator; −1: in none
  OpId idle = -1;            ///< a layer in no item that can make a first stage without cost; −1: none
};

/// `keeps_activations`: the bytes that a stage keeps count, so that layers with outputs are not free.
LayerNetwork layer_network(const plan::LayerFigures& layers, Merge merge, bool keeps_activations);

/// Operators of each stage, ascending, from the stage of each item. Operators in no item go to the stage of their first
/// reader, but `idle` to the first stage. \pre stages ascend along edges.
std::vector<std::vector<OpId>> stage_ops(const LayerNetwork& network, const plan::LayerFigures& layers,
                                         std::span<const int> stage_of_item);

/// What lies in and crosses after each prefix.
struct PrefixFigures {
  std::vector<double> seconds, parameter_bytes, activation_bytes, crossing_bytes;
};

PrefixFigures prefix_figures(const LayerNetwork& network, const Prefixes& prefixes);

/// The prefixes of an order of the items at the at most `most` + 1 cheapest places: of each part of equal time, the one
/// after which the fewest bytes cross.
Prefixes cheapest_prefixes(const LayerNetwork& network, std::span<const int> order, std::size_t most);

}  // namespace millrace::partitioners
