// The ranks of one replica of a tensor-parallel stage, as the kernels of one of them talk to the others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/transport.h"
#include "kernels/precision.h"
#include "program/program.h"
#include "runtime/clock.h"

namespace millrace::runtime {

class PartGroup {
 public:
  /// Of the replica of `stage` that `rank` is in; null where a replica has one rank. Collective over the ranks of the
  /// replica. \param transport  that of `rank`; null: nothing is ever sent, as where memory is forecast
  /// \param observer  hears of waits; null: nobody. \param clock  that waits are measured by
  static std::unique_ptr<PartGroup> make(const ProgramStage& stage, int rank, comm::Transport* transport,
                                         comm::WaitObserver* observer, Clock clock = steady_clock());

  int size() const { return static_cast<int>(ranks_.size()); }
  int index() const { return index_; }  ///< which part this rank has

  /// Operations under way, which wait() ends. All members start theirs in the same order.
  using Tickets = std::vector<comm::Ticket>;

  /// Starts a sum over the group, in place.
  void sum(void* values, std::int64_t count, kernels::Precision precision, Tickets& tickets);
  /// Starts to send (receive) what goes to (comes from) each member; empty: nothing. The own entry is left alone.
  void exchange(std::span<const std::vector<std::byte>> to, std::span<std::vector<std::byte>> from, Tickets& tickets);
  /// Starts a collective of `bytes` logical bytes that do not exist.
  void model(comm::Collective kind, std::int64_t bytes, Tickets& tickets);
  void wait(Tickets& tickets);

  /// How long wait() lasted since the last call.
  Seconds take_waited() { return std::exchange(waited_, Seconds(0)); }

 private:
  PartGroup(std::vector<int> ranks, int index, comm::Transport* transport, comm::WaitObserver* observer, Clock clock);

  std::vector<int> ranks_;  // by part
  int index_;
  comm::Transport* transport_;
  comm::WaitObserver* observer_;
  Clock clock_;
  comm::GroupId group_{};
  Seconds waited_{};
};

}  // namespace millrace::runtime
