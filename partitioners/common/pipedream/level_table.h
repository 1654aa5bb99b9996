// One level of the PipeDream recurrence: the best slowest stage for each prefix and number of machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/limits.h"
#include "partitioners/common/pipedream/layer_network.h"
#include "plan/published/machine.h"

namespace millrace::partitioners {

/// What is cut, and the machines of one level.
struct LevelQuestion {
  const Prefixes* prefixes = nullptr;
  const PrefixFigures* figures = nullptr;
  plan::Level level{};
  std::optional<double> memory_bytes{};
};

/// Last stage of a pipeline from the source to a prefix.
struct LevelStep {
  std::size_t from = 0;  ///< prefix before it
  std::size_t to = 0;
  int machines = 0;
};

/// Values above a given limit are not told apart. Prefixes are extended in ascending order.
class LevelTable {
 public:
  /// Pipelines start after prefix `source`; with `idle`, machines may be parked on a first stage without cost.
  LevelTable(const LevelQuestion& question, std::size_t source, bool idle);

  /// Slowest stage of the best pipeline from the source to `to` on exactly `machines`.
  double value(std::size_t to, int machines) const { return cell(to, machines).value; }

  /// Machines between which a pipeline that ends at `prefix` can be part of one below `limit` to the full prefix.
  /// Holds where the seconds of stages are at least `per_machine` times the layers' (1, or 1 / machines within).
  struct Window {
    int least = 0;
    int most = -1;
    bool empty() const { return most < least; }
  };
  Window window(std::size_t prefix, double limit, double per_machine) const;

  /// Offers layers (from, to] as last stage, `seconds` of compute, to every pipeline to `from` within `before`.
  void extend(std::size_t from, std::size_t to, double seconds, double limit, Window before, Window after);

  /// Offers to every pipeline to `prefix` a last stage without layers, which holds some machines.
  void park(std::size_t prefix, double limit);

  /// Largest compute time of (from, to] with which a stage can stay below `limit`; negative: none.
  double most_seconds(std::size_t from, std::size_t to, double limit, Window before, Window after) const;

  /// Stages of the pipeline behind value(), first to last; a parked first stage has from = to.
  std::vector<LevelStep> trace(std::size_t to, int machines) const;

 private:
  struct Cell {
    double value = kNever;
    std::int32_t from = -1;
    std::int32_t machines = 0;
  };
  std::size_t index(std::size_t prefix, int machines) const {
    return (prefix - source_) * static_cast<std::size_t>(question_.level.machines + 1) +
           static_cast<std::size_t>(machines);
  }
  const Cell& cell(std::size_t prefix, int machines) const { return cells_[index(prefix, machines)]; }
  Cell& cell(std::size_t prefix, int machines) { return cells_[index(prefix, machines)]; }
  double borders(std::size_t from, std::size_t to, int machines) const;

  LevelQuestion question_;
  std::size_t source_;
  std::vector<Cell> cells_;
};

}  // namespace millrace::partitioners
