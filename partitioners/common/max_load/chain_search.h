// Whether a chain of stages with a load below a threshold exists, answered by a search over ideals (METHODS 6,
// `exact`).
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "partitioners/common/max_load/growing_stage.h"
#include "partitioners/common/max_load/ideal_set.h"
#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

enum class Verdict : std::uint8_t { found, none, stopped };

struct SearchLimits {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();  ///< items taken or left, in all
  std::size_t bytes = std::size_t{1} << 28;                         ///< of ideals and states
};

/// Goes from the empty set device by device: layer j holds the ideals that j devices cover, each stage below the
/// threshold. A state is left out
///  - when the devices that are left cannot take the work that is left, or
///  - when one more item could be behind it with no more devices, and that item is never missed later: what it
///  computes,
///    and what no longer has to be read for it alone, costs at least what it makes others read.
class ChainSearch {
 public:
  ChainSearch(const Model& model, double threshold, const SearchLimits& limits);

  /// "none" is a proof; "stopped" says that time or memory ended it.
  Verdict run();
  /// Of the chains that were found, one with a small load. \pre run() said "found".
  const Parts& chain() const { return chain_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  // An ideal that some devices cover.
  struct State {
    std::uint32_t ideal = 0;
    std::uint32_t used = 0;  // devices of each kind, mixed radix
    std::uint32_t parent = kNone;
    std::uint32_t next = kNone;  // of the same ideal
    double load = 0;             // of its fullest stage
  };
  // What the items behind an ideal need at least.
  struct Left {
    double accelerator_s = 0;  // of items that a core takes time for
    double core_s = 0;         // of items that only cores take
    double bytes = 0;
  };
  struct Frame {
    std::size_t begin = 0, next = 0;
    std::size_t end = 0;  // its candidates in candidates_
    Left left;
    Item item = 0;          // added last; not of the root
    bool exceeded = false;  // it has no load to offer, or one more item makes it no worse
  };

  // Devices that are not used yet.
  struct Free {
    std::uint32_t devices = 0;
    double accelerators = 0;
    double cores = 0;
    double memory = 0;  // of all of them
  };

  std::uint32_t used_of(std::uint32_t used, std::size_t kind) const { return used / stride_[kind] % radix_[kind]; }
  bool available(std::uint32_t used, std::size_t kind) const { return used_of(used, kind) + 1 < radix_[kind]; }
  double accelerator_capacity(const Left& left, const Free& free) const;
  double least_compute(const Left& left, std::size_t kind, const std::vector<std::uint32_t>& states) const;
  bool covers(std::uint32_t fewer, std::uint32_t used) const;
  bool can_finish(const Left& left, std::uint32_t used) const;
  void take(Left& left, Item item) const;

  void prepare();
  bool layer();
  std::vector<std::uint32_t> worth_expanding(std::uint32_t ideal);
  bool known(std::uint32_t ideal, std::uint32_t used) const;
  bool never_missed(Item item) const;
  void unpack(std::uint32_t ideal);
  void expand(std::uint32_t ideal, std::size_t kind, const std::vector<std::uint32_t>& states);
  void finish(std::size_t kind, std::uint32_t state);
  bool hopeless() const { return stage_.committed(least_compute_) >= threshold_; }
  void descend(Frame& frame, const DeviceKind& kind);
  void ascend();
  void offer(std::size_t kind, const Left& left, const std::vector<std::uint32_t>& states);
  void reach(std::uint32_t ideal, std::uint32_t used, std::uint32_t parent, double load);
  bool stopped();
  void trace(std::uint32_t state);

  const Model& model_;
  double threshold_;
  SearchLimits limits_;
  std::vector<std::uint32_t> radix_, stride_;
  std::vector<Free> free_;            // by devices used
  std::vector<bool> any_core_takes_;  // in no time
  double core_gain_ = 0;              // accelerator seconds that a second of a core saves at most
  double capacity_ = 0;               // seconds of a device below the threshold
  Left all_;

  IdealSet ideals_;
  std::vector<std::uint32_t> first_state_;         // by ideal
  std::vector<std::uint32_t> layer_, next_layer_;  // ideals with new states, each once
  std::vector<bool> in_next_;                      // by ideal
  std::vector<State> states_;
  std::uint32_t layer_begin_ = 0, layer_end_ = 0;  // states of the layer at hand

  GrowingStage stage_;
  std::vector<std::uint64_t> here_;  // the ideal at hand
  std::uint64_t hash_ = 0;
  std::vector<bool> earlier_;
  std::vector<std::uint32_t> waiting_;  // predecessors that are missing, by item
  std::vector<Item> candidates_;
  std::vector<Frame> frames_;
  double least_compute_ = 0;  // of a stage after which the devices left can take the rest
  std::uint64_t steps_ = 0;
  bool stopped_ = false;
  Parts chain_;
};

}  // namespace millrace::partitioners::max_load
