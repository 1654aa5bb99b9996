// The question of objective max_load in index form: what every search for it works on.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace millrace::partitioners::max_load {

/// An operator of the graph, or several that stay together; numbered in topological order.
using Item = std::size_t;

/// Devices that are told apart by nothing but their number.
struct DeviceKind {
  bool cpu = false;
  double memory = 0;  ///< bytes of items; infinite for CPU cores
  std::vector<int> devices;
};

/// One producer's output: each accelerator that holds it or reads it pays once, unless all is on one device.
struct Transfer {
  Item from = 0;
  std::vector<Item> to;  ///< ascending, without `from`, never empty
  double seconds = 0;    ///< positive
};

struct Model {
  std::vector<double> accelerator_s;  ///< by item; infinite where a CPU core must take it
  std::vector<double> cpu_s;
  std::vector<double> bytes;
  std::vector<std::vector<Item>> before, after;  ///< order of stages; ascending, each once, not all transitive ones
  std::vector<Transfer> transfers;
  std::vector<std::vector<std::size_t>> touching;  ///< transfers that an item is an end of, ascending
  std::vector<DeviceKind> kinds;
  std::vector<std::vector<OpId>> members;  ///< operators of the graph

  std::size_t size() const { return accelerator_s.size(); }
  bool on_accelerator(Item item) const { return std::isfinite(accelerator_s[item]); }
  int devices() const;
};

/// Times and bytes as the file has them; transfers that cost nothing are left out.
/// \throws InvalidInput  when the graph was not read from a dnn-partitioning file.
Model make_model(const plan::Problem& problem);

/// Fills `touching` from `transfers`.
void index_transfers(Model& model);

/// Items on one device of a kind.
struct Part {
  std::size_t kind = 0;
  std::vector<Item> items;  ///< ascending
};
/// Parts of one solution. Chains: each part reads nothing of a later one.
using Parts = std::vector<Part>;

/// The load of items on a device of a kind, added up afresh; infinite where the device cannot hold them.
double part_load(const Model& model, const Part& part);
/// The fullest of the parts, each on a device of its own.
double max_load(const Model& model, const Parts& parts);

/// The parts as operators of the graph, from the items of a model made of it.
Parts unfolded(const Model& model, const Parts& parts);

}  // namespace millrace::partitioners::max_load
