// Texts from rank to rank in no fixed order, for commands whose ranks share out work.
#pragma once

#include <optional>
#include <string>

#include <mpi.h>

namespace millrace::comm {

struct Letter {
  int from = 0;
  std::string text;
};

/// On the job's own communicator, with a tag that nothing else uses; while no training runs.
class Mailbox {
 public:
  explicit Mailbox(MPI_Comm communicator);

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Waits until the other rank takes it, which it does when it polls. \pre fewer than 2 GiB.
  void send(int to, const std::string& text) const;
  /// A letter that has come, from any rank.
  std::optional<Letter> poll() const;

 private:
  MPI_Comm communicator_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace millrace::comm
