// The transport over MPI: operations split under a count limit, and a helper thread that keeps them moving while the
// caller computes (METHODS 8: non-blocking MPI operations do not progress by themselves).
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <mpi.h>

#include "comm/transport.h"

namespace millrace::comm {

struct MpiTransportOptions {
  std::int64_t largest_message_bytes = std::int64_t{64} << 20;  ///< longer messages go in pieces
  /// Longer sums go in segments, which overlap each other: 256 KiB to 16 MiB (METHODS 5).
  std::int64_t reduction_segment_bytes = std::int64_t{4} << 20;
};

class MpiTransport final : public Transport {
 public:
  /// Works on duplicates of `communicator`: one for messages, one for each group.
  explicit MpiTransport(MPI_Comm communicator, MpiTransportOptions options = {});
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::int64_t largest_tag() const override { return largest_tag_; }

  Ticket send(std::span<const std::byte> data, int peer, int tag) override;
  Ticket receive(std::span<std::byte> data, int peer, int tag) override;
  GroupId group(std::span<const int> ranks) override;
  Ticket all_reduce(GroupId group, void* data, std::int64_t count, Element element) override;
  Ticket reduce_scatter(GroupId group, void* data, std::int64_t count, Element element) override;
  Ticket all_gather(GroupId group, void* data, std::int64_t count, Element element) override;
  bool test(Ticket ticket) override;
  void wait(Ticket ticket, WaitObserver* observer) override;

  std::int64_t bytes_sent() const override { return bytes_sent_; }
  std::int64_t bytes_received() const override { return bytes_received_; }

 private:
  Ticket open_ticket(std::int64_t pieces);
  std::int64_t elements_of_segment(std::int64_t element_size) const;
  /// Of one segment of the part of `member`: `own` where that is this rank.
  using Segment = std::function<void(void* data, int count, int member, bool own, MPI_Request* request)>;
  Ticket by_parts(GroupId group, void* data, std::int64_t count, Element element, const Segment& start);
  bool advance(Ticket ticket);  // with mutex_ held
  void progress();
  void push(Ticket ticket);    // with mutex_ held: it ends only if this side goes on with it
  void forget(Ticket ticket);  // with mutex_ held: it is done

  MpiTransportOptions options_;
  MPI_Comm messages_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::int64_t largest_tag_ = 0;
  std::vector<MPI_Comm> groups_;
  std::map<std::vector<int>, GroupId> group_of_;
  std::int64_t bytes_sent_ = 0;
  std::int64_t bytes_received_ = 0;

  // MPI calls of the issuing thread and of the helper exclude each other. There are tickets from the beginning, and
  // they are recycled, so that steady state allocates nothing, however many operations happen to be in flight.
  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<std::vector<MPI_Request>> requests_;  // by ticket
  std::size_t most_pieces_ = 1;                     // of an operation so far: all tickets have room for them
  std::vector<Ticket> free_;
  std::vector<Ticket> active_;        // not known to be done
  std::vector<Ticket> pushing_;       // of them, the sends and reductions
  std::chrono::microseconds nap_{0};  // of the helper, the next one
  bool push_started_ = false;         // while it napped
  bool stop_ = false;
  std::thread helper_;
};

}  // namespace millrace::comm
