// A stage that grows item by item behind a fixed set of earlier ones, with its load and what of it no growth takes
// away.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

/// Counts ends of transfers, so that each step costs as much as the item has transfers. Steps are undone in reverse
/// order, which restores the same numbers to the bit.
class GrowingStage {
 public:
  explicit GrowingStage(const Model& model);

  /// An empty stage on a device of `kind`, with `earlier` (by item) before it.
  void start(const std::vector<bool>& earlier, const DeviceKind& kind);

  void add(Item item);
  void undo_add(Item item);
  /// `item` comes later: it will not be in the stage.
  void exclude(Item item);
  void undo_exclude(Item item);

  double load() const { return now_.compute + now_.transfers; }
  /// Every stage that this one can grow to has at least this load, when it must grow to `least_compute`.
  double committed(double least_compute = 0) const { return std::max(now_.compute, least_compute) + now_.committed; }
  double bytes() const { return now_.bytes; }

 private:
  struct Ends {
    std::uint32_t readers = 0;  // in all
    std::uint32_t readers_inside = 0;
    std::uint32_t readers_outside = 0;  // earlier, or excluded
    bool from_inside = false;
    bool from_outside = false;
    // Paid by the stage as it is; paid whatever is still added.
    bool paid() const { return from_inside ? readers_inside < readers : readers_inside > 0; }
    bool sure() const { return from_inside ? readers_outside > 0 : from_outside && readers_inside > 0; }
  };
  struct Sums {
    double compute = 0;
    double transfers = 0;
    double committed = 0;
    double bytes = 0;
  };
  enum class Step : std::uint8_t { add, exclude };

  void count(Ends& ends, bool as_producer, Step step, bool undo) const;
  void step(Item item, Step step);
  void undo(Item item, Step step);

  const Model& model_;
  bool cpu_ = false;
  std::vector<Ends> ends_;  // by transfer
  Sums now_;
  std::vector<Sums> past_;  // before each step that can be undone
};

}  // namespace millrace::partitioners::max_load
