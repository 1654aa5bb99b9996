// Memory that all ranks of a node see: a segment of each rank, mapped by the others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <mpi.h>

#include "comm/node/bell.h"

namespace millrace::comm {

inline constexpr std::int64_t kPage = 4096;  ///< bytes
inline constexpr std::int64_t kLine = 64;    ///< bytes of a cache line

/// What others tell a rank through: at the start of its segment.
struct Desk {
  alignas(64) Bell issuer;                       ///< of the thread that issues operations, while it waits
  alignas(64) Bell helper;                       ///< of its helper thread
  alignas(64) std::atomic<std::uint32_t> waits;  ///< the issuer waits: it does what the helper would do
  alignas(64) std::atomic<std::uint64_t> inbox;  ///< the parcel posted last; 0: none
};

/// A segment has no name that a crash could leave behind, and takes memory only as it is allocated.
class NodeMemory {
 public:
  /// The ranks of `communicator` on this node. Collective over it. Null on all of them where there is only one, or
  /// where the system does not let them share memory; says so once.
  /// \param ranks_per_node  as if nodes had so many at most; 0: as they are
  /// \param room  addresses of each rank's segment, in bytes; 0: more than the machine has memory
  static std::shared_ptr<NodeMemory> make(MPI_Comm communicator, int ranks_per_node, std::int64_t room = 0);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  int index() const { return index_; }
  /// Of the communicator, by index on the node.
  const std::vector<int>& ranks() const { return ranks_; }
  /// -1: on another node.
  int index_of(int rank) const;

  Desk& desk(int index) const { return *reinterpret_cast<Desk*>(segments_[static_cast<std::size_t>(index)]); }
  std::byte* at(int index, std::uint64_t offset) const { return segments_[static_cast<std::size_t>(index)] + offset; }
  /// Of memory of this rank's segment; nothing: it lies elsewhere.
  std::optional<std::uint64_t> offset_of(const void* data) const;

  /// Zeroed memory of this rank's segment until all ranks are done with it; null where there is no more.
  std::byte* take(std::int64_t bytes);
  /// The same, given back when the last holder is gone, which must be after others have last looked at it.
  static std::shared_ptr<std::byte[]> allocate(const std::shared_ptr<NodeMemory>& memory, std::int64_t bytes);

 private:
  NodeMemory() = default;
  bool open_own(std::int64_t capacity);
  bool open_others(MPI_Comm node);
  void give_back(const std::byte* block, std::int64_t bytes) const;

  std::vector<int> ranks_;
  int index_ = 0;
  int file_ = -1;
  std::int64_t capacity_ = 0;
  std::vector<std::byte*> segments_;
  std::vector<std::int64_t> capacities_;
  std::mutex mutex_;
  std::int64_t used_ = 0;
};

}  // namespace millrace::comm
