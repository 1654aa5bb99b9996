// Real messages that take their modelled time: a decorator around a transport, for ranks on a virtual clock.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "base/units.h"
#include "base/virtual_clock.h"
#include "comm/emulated/modelled_collectives.h"
#include "comm/transport.h"

namespace millrace::comm {

/// What the links between ranks take.
struct LinkModel {
  /// One message alone, from its send to its arrival; that of no bytes is the latency, for which no channel is held.
  std::function<Seconds(Bytes bytes, int from, int to)> message;
  using Collective = std::function<Seconds(Bytes bytes, std::span<const int> ranks)>;
  Collective all_reduce;
  Collective reduce_scatter{};
  Collective all_gather{};
  CollectiveTime collective{};  ///< of tensor-parallel ranks; may be empty where there are none
  bool half_duplex = false;     ///< sends and receives of a rank share one channel
};

/// Model time follows the simulator's rules (sim/run.h, contention: fixed): a rank sends one message and receives one
/// at a time, and its sums run one after the other on a channel of their own, collectives of tensor-parallel ranks on
/// another. A message starts when it was sent, its
/// receive was posted and both channels are free; a sum when all members have come and their earlier ones are over.
/// One difference: the sender's channel is free again after the message's time, also where the receiver delayed it.
///
/// Data whose pointer is null does not exist (kernels/storage.h): its size counts in full, up to 64 KiB of a pattern
/// travel in its place. Other data is carried whole. Each message has a header with its size, its time of sending on
/// the virtual clock and a checksum; the receiver checks all. Waiting ends when the model time is due.
class EmulatedTransport final : public Transport {
 public:
  static constexpr std::int64_t kPayload = std::int64_t{64} << 10;

  /// Both outlive it.
  EmulatedTransport(Transport& inner, VirtualClock& clock, LinkModel links);
  ~EmulatedTransport() override;
  EmulatedTransport(const EmulatedTransport&) = delete;
  EmulatedTransport& operator=(const EmulatedTransport&) = delete;

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::int64_t largest_tag() const override { return inner_.largest_tag(); }

  Ticket send(std::span<const std::byte> data, int peer, int tag) override;
  Ticket receive(std::span<std::byte> data, int peer, int tag) override;
  GroupId group(std::span<const int> ranks) override;
  Ticket all_reduce(GroupId group, void* data, std::int64_t count, Element element) override;
  Ticket model_collective(Collective kind, std::int64_t bytes, std::span<const int> ranks) override;
  Ticket reduce_scatter(GroupId group, void* data, std::int64_t count, Element element) override;
  Ticket all_gather(GroupId group, void* data, std::int64_t count, Element element) override;
  bool test(Ticket ticket) override;
  void wait(Ticket ticket, WaitObserver* observer) override;

  /// Modelled bytes.
  std::int64_t bytes_sent() const override { return bytes_sent_; }
  std::int64_t bytes_received() const override { return bytes_received_; }

 private:
  enum class Kind : std::uint8_t { none, send, receive, sum, collective };
  enum class Stage : std::uint8_t {
    queued,   ///< a sum that is not yet handed to the inner transport
    flying,   ///< handed to the inner transport
    arrived,  ///< a message that is here; when its model time begins is open
    settled   ///< `end` is known
  };
  struct Operation {
    Kind kind = Kind::none;
    Stage stage = Stage::flying;
    Ticket inner = kNoTicket;
    int peer = -1;
    std::int64_t bytes = 0;  // modelled
    double come = 0;         // model time: receive posted, sum joined; of an arrived message when it can start
    double end = 0;
    void* data = nullptr;  // null: does not exist
    GroupId group = -1;
    std::int64_t number = 0;  // of a collective
    Element element = Element::float32;
    std::int64_t count = 0;
    const LinkModel::Collective* model = nullptr;  // of a sum
    bool gathers = false;                          // a sum to which each member gives its part alone
    std::vector<std::byte> buffer;                 // of messages
    std::vector<double> sums;                      // of sums: times and sizes of all members, then the payload
  };
  struct Group {
    std::vector<int> ranks;
    std::size_t place = 0;  // of this rank
    double free = 0;        // model time at which its last settled sum is over
  };

  Operation& at(Ticket ticket) { return operations_[static_cast<std::size_t>(ticket)]; }
  Ticket open(Kind kind);
  void close(Ticket ticket);
  bool advance(Ticket ticket);
  bool look_after_sums();
  Ticket start_sum(GroupId group, void* data, std::int64_t count, Element element, const LinkModel::Collective& model,
                   bool gathers);
  void issue(Operation& sum);
  void settle(Operation& sum);
  void look_for_messages();
  void read_header(Operation& message);
  void settle_messages_until(const Operation& message);
  void settle_message(Operation& message);

  Transport& inner_;
  VirtualClock& clock_;
  LinkModel links_;
  std::deque<Operation> operations_;  // by ticket
  std::vector<Ticket> free_;
  std::vector<Ticket> messages_;  // posted receives that are not settled
  std::deque<Ticket> sums_;       // in the order of their starts, not settled
  ModelledCollectives collectives_;
  std::vector<Group> groups_;         // by the inner transport's id
  std::array<double, 2> channels_{};  // when the way out and the way in are free
  double sum_channel_ = 0;
  std::vector<std::byte> pattern_;
  std::int64_t bytes_sent_ = 0;
  std::int64_t bytes_received_ = 0;
};

}  // namespace millrace::comm
