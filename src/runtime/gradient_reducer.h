// The sum of each gradient bucket over the ranks that own it, and what brings them the parts that others update.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/even_parts.h"
#include "base/units.h"
#include "comm/transport.h"
#include "program/program.h"
#include "runtime/stage_runner.h"

namespace millrace::runtime {

/// Where a bucket lies in the storage of one stage that this rank runs.
struct BucketPlace {
  StageRunner* runner = nullptr;  ///< null where this rank owns nothing of the bucket
  std::size_t first = 0;          ///< position in the storage order
  std::size_t count = 0;
  ElementRange part{};    ///< of its elements, what this rank updates: all, or its part of a sharded optimizer
  bool in_parts = false;  ///< other owners update others
};

/// A rank that holds several stages of a bucket (tied parameters, copies of the model) adds their gradients up in the
/// first one's storage, in the order of the stages, reduces that, and gives the sum to the others.
class GradientReducer {
 public:
  /// Makes the groups of all buckets that this rank owns, in bucket order, which is the same on all ranks.
  GradientReducer(const Graph& graph, const Program& program, std::vector<StageRunner*> runners, int rank,
                  comm::Transport& transport);

  /// Where the sum is.
  const BucketPlace& place(std::int32_t bucket) const;
  /// All copies on this rank, by stage.
  std::span<const BucketPlace> copies(std::int32_t bucket) const { return state(bucket).places; }

  /// Starts the sum over the owners. \pre all contributions of this rank are there.
  void start(std::int32_t bucket);
  /// In place of start(): somebody else has put the sum of all owners into place().
  void provided(std::int32_t bucket) { state(bucket).phase = Phase::combined; }
  /// Waits until every copy holds the sum, of the part that this rank updates. A bucket with one owner needs no start.
  void finish(std::int32_t bucket, comm::WaitObserver& observer);
  /// Empties the gradients of all copies for the next contributions.
  void clear(std::int32_t bucket);
  /// Empties only what running statistics are made of: forwards give to those before the rest is emptied.
  void clear_statistics(std::int32_t bucket);
  /// Empties the rest.
  void clear_gradients(std::int32_t bucket);

  /// Starts bringing the parts that the other owners have updated.
  void gather(std::int32_t bucket);
  /// Waits until all that was started has come, into every copy.
  void finish_gathers(comm::WaitObserver& observer);

  /// Looks which reductions have ended, so that their times are known.
  void poll();
  /// Time in flight of all reductions that have ended, as seen by poll() and finish().
  Seconds in_flight() const { return in_flight_; }

 private:
  enum class Phase : std::uint8_t { gathering, combined, complete };
  struct State {
    std::vector<BucketPlace> places;
    comm::GroupId group = -1;  // -1: no reduction
    comm::Ticket ticket = comm::kNoTicket;
    Phase phase = Phase::gathering;
    std::int64_t started = 0;  // nanoseconds of the steady clock
  };
  const State& state(std::int32_t bucket) const { return states_[static_cast<std::size_t>(bucket)]; }
  State& state(std::int32_t bucket) { return states_[static_cast<std::size_t>(bucket)]; }
  static void combine(State& state);
  void wait(std::int32_t bucket, comm::WaitObserver& observer);
  static void copy_from_first(const State& state, bool values, ElementRange part);
  static void clear(State& state, bool statistics);
  void ended(State& state);

  comm::Transport& transport_;
  std::vector<State> states_;            // by bucket
  std::vector<std::int32_t> under_way_;  // buckets in flight
  std::vector<std::int32_t> gathering_;  // buckets whose parts are under way
  Seconds in_flight_{};
};

}  // namespace millrace::runtime
