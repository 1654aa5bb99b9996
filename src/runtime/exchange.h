// The messages of one program on one rank: send buffers, receives posted ahead, and their order (METHODS 4).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/transport.h"
#include "graph/graph.h"
#include "kernels/precision.h"
#include "kernels/storage.h"
#include "program/message_channels.h"
#include "program/program.h"

namespace millrace::runtime {

/// Bytes of one row of an activation or of its gradient.
std::int64_t bytes_per_row(const Tensor& tensor, kernels::Precision precision);

/// Bytes of the buffers that `rank`, one of its ends, has for a channel.
std::int64_t buffer_bytes(const MessageChannel& channel, int rank, const Graph& graph, kernels::Precision precision);

/// One per program. Each channel posts `receive_window` receives beyond the one that is waited for; sends copy into
/// buffers of their own, which free when they are matched. All buffers are there from the start (MessageChannel): a
/// rank that is that far ahead of a peer waits for it.
class Exchange {
 public:
  /// \param storage  none: messages have sizes and no buffers.
  Exchange(const Graph& graph, const Program& program, int rank, kernels::Precision precision,
           comm::Transport& transport, kernels::Storage storage = kernels::Storage::real);

  /// Start of a round of the program's list, the one in which iteration `round` begins, or one that drains: posts the
  /// first receives of every channel. `begun`: iterations that have begun so far; messages of others do not come.
  /// \param validates  only what is sent before the round is valid is received (Program::post_validation).
  void begin(std::int64_t round = 0, std::int64_t begun = 1, bool validates = false);
  /// The round is valid: the rest comes too.
  void go_on();
  /// It is not: takes in all that was sent, so that the round can begin again.
  void discard(comm::WaitObserver& observer);
  /// Waits until a send buffer is free.
  void make_room(std::int32_t transfer, comm::WaitObserver& observer);
  /// \pre make_room(transfer)
  void send(std::int32_t transfer, const void* data);
  /// Waits for the transfer's data; valid until release(transfer).
  const void* receive(std::int32_t transfer, comm::WaitObserver& observer);
  /// Gives the buffer back, which posts the channel's next receive.
  void release(std::int32_t transfer);
  /// Waits until every send is matched: before buffers or the transport go.
  void drain(comm::WaitObserver& observer);

  std::int64_t buffer_bytes() const;
  /// Bytes of the rows of a transfer.
  std::int64_t transfer_bytes(std::int32_t transfer) const;

 private:
  struct Listed {
    std::int32_t transfer = -1;
    std::int32_t lag = 0;
    bool early = false;  // sent before the sender's round is valid
  };
  struct Buffer {
    std::shared_ptr<std::byte[]> data;
    comm::Ticket ticket = comm::kNoTicket;
  };
  struct Channel {
    std::vector<Listed> listed;           // in program order
    std::vector<std::int32_t> transfers;  // of this round
    std::int64_t capacity = 0;            // bytes of the largest
    std::vector<Buffer> buffers;          // a ring
    std::size_t limit = 0;                // of the transfers: may be posted
    std::size_t posted = 0;               // receives posted in this round
    std::size_t received = 0;             // and received
    std::size_t next = 0;                 // of the buffers, for the next send
  };
  void post(Channel& channel);
  void post_first(Channel& channel);
  Channel& channel_of(std::int32_t transfer);

  const Program& program_;
  kernels::Storage storage_;
  comm::Transport& transport_;
  std::vector<std::int64_t> row_bytes_;   // by transfer
  std::vector<std::int32_t> channel_of_;  // by transfer; -1: not of this rank
  std::vector<Channel> channels_;
  std::vector<std::int32_t> receiving_;  // channels that receive
};

}  // namespace millrace::runtime
