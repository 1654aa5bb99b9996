// Work that every rank does and that either all succeed in or all fail at with one message.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "comm/transport.h"

namespace millrace::runtime {

/// Over all ranks of the transport. Collective from the constructor on. The transport is used by the calling thread.
class Agreement {
 public:
  explicit Agreement(comm::Transport& transport);

  /// Work, called on a thread of its own: tells of each step, and gives numbers.
  using Work = std::function<std::vector<double>(const std::function<void()>& step)>;

  /// Runs `work`, which gives `width` numbers, on every rank; all ranks get those of all, rank after rank. However long
  /// it takes, the ranks tell each other how far they are: a wait for a rank whose work goes on is a new one with each
  /// step of it.
  /// \throws SharedError  on every rank what the lowest rank failed with.
  std::vector<double> after(std::size_t width, const Work& work, comm::WaitObserver& observer);

 private:
  class Progress;
  void wait_for_all(Progress& own, comm::WaitObserver& observer);
  void sum(std::vector<double>& values, comm::WaitObserver* observer);

  comm::Transport& transport_;
  comm::GroupId all_ = -1;
};

}  // namespace millrace::runtime
