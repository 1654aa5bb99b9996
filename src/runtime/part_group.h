// The ranks of one replica of a tensor-parallel stage, as the kernels of one of them talk to the others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/transport.h"
#include "kernels/precision.h"
#include "program/program.h"

namespace millrace::runtime {

class PartGroup {
 public:
  /// Of the replica of `stage` that `rank` is in; null where a replica has one rank. Collective over the ranks of the
  /// replica. \param transport  that of `rank`; null: nothing is ever sent, as where memory is forecast
  /// \param observer  hears of waits; null: nobody
  static std::unique_ptr<PartGroup> make(const ProgramStage& stage, int rank, comm::Transport* transport,
                                         comm::WaitObserver* observer);

  int size() const { return static_cast<int>(ranks_.size()); }
  int index() const { return index_; }  ///< which part this rank has

  /// Sum over the group, in place; waits for it.
  void sum(void* values, std::int64_t count, kernels::Precision precision);

  /// What goes to (comes from) each member; empty: nothing. The own entry is left alone. Waits for all of it.
  void exchange(std::span<const std::vector<std::byte>> to, std::span<std::vector<std::byte>> from);

 private:
  PartGroup(std::vector<int> ranks, int index, comm::Transport* transport, comm::WaitObserver* observer);

  std::vector<int> ranks_;  // by part
  int index_;
  comm::Transport* transport_;
  comm::WaitObserver* observer_;
  comm::GroupId group_{};
  std::vector<comm::Ticket> tickets_;
};

}  // namespace millrace::runtime
