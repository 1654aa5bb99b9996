// The transport of training: ranks of a node exchange through shared memory, others through MPI.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "comm/mpi/mpi_transport.h"
#include "comm/node/node_memory.h"
#include "comm/node/parcels.h"
#include "comm/node/shared_sum.h"
#include "comm/transport.h"

namespace millrace::comm {

struct NodeTransportOptions {
  MpiTransportOptions mpi{};
  bool shares_memory = true;  ///< false: all goes by MPI
  int ranks_per_node = 0;     ///< as if nodes had so many at most; 0: as they are
  std::int64_t room = 0;      ///< addresses that each rank shares, in bytes; 0: more than there is memory
};

/// A send offers the memory that it lies in, and its receiver copies it, or reads it in place, when it waits for it; a
/// sum is added up in place by threads of its members that wait, or by their helpers where none does. Memory of
/// allocate() needs no other copy.
class NodeTransport final : public Transport {
 public:
  /// Collective over `communicator`.
  explicit NodeTransport(MPI_Comm communicator, NodeTransportOptions options = {});
  ~NodeTransport() override;
  NodeTransport(const NodeTransport&) = delete;
  NodeTransport& operator=(const NodeTransport&) = delete;

  int rank() const override { return mpi_.rank(); }
  int size() const override { return mpi_.size(); }
  std::int64_t largest_tag() const override { return mpi_.largest_tag(); }
  /// Ranks whose memory this one sees, itself among them.
  int ranks_of_node() const { return memory_ == nullptr ? 1 : memory_->size(); }

  Ticket send(std::span<const std::byte> data, int peer, int tag) override;
  Ticket receive(std::span<std::byte> data, int peer, int tag) override;
  GroupId group(std::span<const int> ranks) override;
  Ticket all_reduce(GroupId group, void* data, std::int64_t count, Element element) override;
  Ticket reduce_scatter(GroupId group, void* data, std::int64_t count, Element element) override;
  Ticket all_gather(GroupId group, void* data, std::int64_t count, Element element) override;
  bool test(Ticket ticket) override;
  void wait(Ticket ticket, WaitObserver* observer = nullptr) override;
  const std::byte* wait_in_place(Ticket ticket, const std::byte* buffer, WaitObserver* observer) override;
  void taken(Ticket ticket) override;
  std::shared_ptr<std::byte[]> allocate(std::int64_t bytes) override;

  std::int64_t bytes_sent() const override { return bytes_sent_ + mpi_.bytes_sent(); }
  std::int64_t bytes_received() const override { return bytes_received_ + mpi_.bytes_received(); }

 private:
  // What is known of each operation.
  enum class Kind : std::uint8_t { unused, mpi, send, receive, sum };
  struct Operation {
    Kind kind = Kind::unused;
    bool in_place = false;      // a receive that is being read
    bool complete = false;      // a receive whose buffer is filled, a sum that this rank has left
    bool arrived = false;       // a sum
    Ticket by_mpi = kNoTicket;  // of a message that lies where others do not see it
    Parcel* parcel = nullptr;
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    int peer = -1;  // index on the node
    int tag = 0;
    std::size_t group = 0;
    SumPart sum{};
    std::byte* staged = nullptr;  // where others see the values, if `data` is not such a place
  };
  struct Group {
    GroupId mpi = -1;
    std::unique_ptr<SharedSum> sum;  // null: not all of them are on this node
    std::uint64_t started = 0;       // sums
  };

  Operation& operation(Ticket ticket) { return operations_[static_cast<std::size_t>(ticket)]; }
  Ticket open(Kind kind);
  void close(Ticket ticket);
  std::byte* stage(std::int64_t bytes);
  void unstage(std::byte* block, std::int64_t bytes);
  std::unique_ptr<SharedSum> make_sum(std::span<const int> ranks);

  // With mutex_ held.
  void match(Operation& receive, Parcel* parcel);
  void fill(Operation& receive);
  void settle_sums();  // leaves those that are done, arrives at those for which there is a place now
  void arrive(Operation& sum);
  bool advance(Operation& at);  // true: it is done
  bool serve_messages();

  bool serve();  // what others wait for; true: there was something
  /// Until the message of a receive can be read in place, has been copied, or comes by MPI.
  void wait_for_parcel(Ticket ticket, WaitObserver* observer);
  template <class Done>
  void sleep_until(Done done, WaitObserver* observer);
  void call(int index);  // wakes the thread of a rank that does what is to be done
  void help();

  MpiTransport mpi_;
  std::shared_ptr<NodeMemory> memory_;  // null: all goes by MPI
  std::int64_t bytes_sent_ = 0;
  std::int64_t bytes_received_ = 0;
  std::vector<Group> groups_;
  std::map<std::vector<int>, GroupId> group_of_;

  std::mutex mutex_;
  std::unique_ptr<Parcels> parcels_;
  std::vector<Operation> operations_;  // by ticket
  std::vector<Ticket> free_;
  std::vector<Ticket> expected_;                             // receives without a parcel, in the order of their posts
  std::vector<Ticket> offered_;                              // receives with one that are not filled
  std::vector<Ticket> sums_;                                 // not left, in the order of their starts
  std::map<std::int64_t, std::vector<std::byte*>> staging_;  // free blocks by size
  bool stop_ = false;
  std::thread helper_;
};

}  // namespace millrace::comm
