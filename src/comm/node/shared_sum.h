// Sums over ranks of a node: each part of the result is added up in place of all of them by whoever has time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/node/node_memory.h"
#include "comm/transport.h"

namespace millrace::comm {

/// One sum of a group, as a member knows it.
struct SumPart {
  std::uint64_t number = 0;  ///< of the group's sums, in the order of their starts, from 0
  std::int64_t bytes = 0;
  Element element = Element::float32;
};

/// A group of ranks of this node. Sums start in the same order on all members. They are added in pairs of neighbours,
/// in the order of the members, so it does not matter who adds.
class SharedSum {
 public:
  /// Bytes of the group's block, which lies in the segment of one member, zeroed.
  static std::int64_t block_bytes(std::size_t members);

  /// \param members  by index on the node, ascending
  SharedSum(std::shared_ptr<NodeMemory> memory, std::vector<int> members, std::byte* block);

  /// This member's values are complete, at `offset` of its segment. False: too many sums before it are in flight; the
  /// bells of all members ring when there is a place.
  bool arrive(const SumPart& sum, std::uint64_t offset) const;
  /// All members have arrived.
  bool is_ready(const SumPart& sum) const;
  /// And some of its parts nobody has begun.
  bool has_work(const SumPart& sum) const;
  /// Adds up parts that nobody has begun. True: it did some.
  bool work(const SumPart& sum) const;
  /// Every member's values are the sum.
  bool is_done(const SumPart& sum) const;
  /// This member needs it no more. \pre is_done
  void leave(const SumPart& sum) const;

  const std::vector<int>& members() const { return members_; }

 private:
  struct Round;
  Round& round(std::uint64_t number) const;
  std::uint64_t* offsets(Round& round) const;
  void add_part(Round& round, const SumPart& sum, std::int64_t part) const;

  std::shared_ptr<NodeMemory> memory_;
  std::vector<int> members_;
  std::size_t own_ = 0;  // of the members
  std::byte* block_;
};

}  // namespace millrace::comm
