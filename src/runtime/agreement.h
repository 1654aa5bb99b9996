// Work that every rank does and that either all succeed in or all fail at with one message.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "comm/transport.h"

namespace millrace::runtime {

/// Over all ranks of the transport. Collective from the constructor on.
class Agreement {
 public:
  explicit Agreement(comm::Transport& transport);

  /// Runs `work`, which gives `width` numbers, on every rank; all ranks get those of all, rank after rank.
  /// \throws SharedError  on every rank what the lowest rank failed with.
  std::vector<double> after(std::size_t width, const std::function<std::vector<double>()>& work,
                            comm::WaitObserver& observer);

 private:
  void sum(std::vector<double>& values, comm::WaitObserver& observer);

  comm::Transport& transport_;
  comm::GroupId all_ = -1;
};

}  // namespace millrace::runtime
