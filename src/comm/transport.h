// What the runtime asks of a network: messages between pairs and sums over groups, all started without blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>

namespace millrace::comm {

/// An operation in flight. A ticket is spent by the first wait() or by test() returning true.
using Ticket = std::int32_t;
inline constexpr Ticket kNoTicket = -1;

/// A set of ranks that reduce together. Every member makes the same groups in the same order.
using GroupId = std::int32_t;

enum class Element : std::uint8_t { float32, float64 };

constexpr std::int64_t element_bytes(Element element) { return element == Element::float64 ? 8 : 4; }

/// What the ranks of a tensor-parallel replica do together.
enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all };

/// Called while a wait lasts, so that a watchdog can tell which operation is late.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  virtual void waiting() = 0;  ///< a wait did not end at once
  virtual void finished() = 0;
};

/// Messages of any size (64-bit) are split under the transport's limit; messages of one pair and tag arrive in the
/// order of their sends. Operations progress while the caller computes. One thread issues all operations of a rank.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::int64_t largest_tag() const = 0;

  /// The buffer must stay untouched until the ticket is done.
  virtual Ticket send(std::span<const std::byte> data, int peer, int tag) = 0;
  virtual Ticket receive(std::span<std::byte> data, int peer, int tag) = 0;

  /// Collective over `ranks` (ascending); called by its members only. Equal sets share one group.
  virtual GroupId group(std::span<const int> ranks) = 0;
  /// Sum over the group, in place, with a fixed order of additions for a fixed group and size.
  virtual Ticket all_reduce(GroupId group, void* data, std::int64_t count, Element element) = 0;
  /// The two halves of an all_reduce. Each member has a part of the data: even_part(count, members, place), members in
  /// the order of the group; parts may be empty. reduce_scatter leaves in it the sum over the group, with a fixed order
  /// of additions, two members as in all_reduce; what it leaves elsewhere is not told. all_gather brings every other
  /// part from its member.
  virtual Ticket reduce_scatter(GroupId group, void* data, std::int64_t count, Element element) = 0;
  virtual Ticket all_gather(GroupId group, void* data, std::int64_t count, Element element) = 0;

  /// A collective of `bytes` logical bytes that do not exist (kernels/storage.h), where time is modelled: it passes on
  /// a channel of its own, one after the other. Those in flight at once have the same ranks. No other transport has it.
  virtual Ticket model_collective(Collective, std::int64_t /*bytes*/, std::span<const int> /*ranks*/) {
    throw std::logic_error("this transport carries data: it models no collective");
  }

  virtual bool test(Ticket ticket) = 0;
  virtual void wait(Ticket ticket, WaitObserver* observer = nullptr) = 0;

  /// As wait(), for a receive into `buffer`: where the message lies, which may be its sender's memory; until taken().
  virtual const std::byte* wait_in_place(Ticket ticket, const std::byte* buffer, WaitObserver* observer) {
    wait(ticket, observer);
    return buffer;
  }
  /// Ends what wait_in_place() began.
  virtual void taken(Ticket) {}

  /// Zeroed memory that sends and sums are fastest from: where other ranks can reach it. May outlive the transport.
  virtual std::shared_ptr<std::byte[]> allocate(std::int64_t bytes) {
    return std::make_shared<std::byte[]>(static_cast<std::size_t>(bytes));
  }

  virtual std::int64_t bytes_sent() const = 0;
  virtual std::int64_t bytes_received() const = 0;
};

}  // namespace millrace::comm
