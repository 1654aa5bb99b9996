// Messages between the ranks of a node: what is sent stays where it is, its receiver is told where.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/node/node_memory.h"

namespace millrace::comm {

/// One message, in its sender's segment from its send until its receiver has taken it.
struct alignas(64) Parcel {
  std::uint64_t next = 0;  ///< in the receiver's inbox: the one posted before; 0: none
  std::uint64_t offset = 0;
  std::int64_t bytes = 0;
  std::int32_t from = 0;  ///< index on the node
  std::int32_t tag = 0;
  bool by_mpi = false;                   ///< it lies where others do not see it: MPI brings it, in the order of parcels
  std::atomic<std::uint32_t> is_taken;   ///< the memory may change
  std::atomic<std::uint32_t> is_urgent;  ///< the sender waits for it
};

/// The parcels that this rank sends and those that came. For one thread at a time.
class Parcels {
 public:
  explicit Parcels(std::shared_ptr<NodeMemory> memory);

  /// To the rank of index `to`. \throws SystemError  out of memory
  Parcel* post(int to, int tag, std::uint64_t offset, std::int64_t bytes, bool by_mpi);
  /// It was taken: gives it back.
  void recycle(Parcel* parcel) { free_.push_back(parcel); }

  /// Takes in what others have posted since. True: something.
  bool collect();
  /// The oldest one from `from` with `tag` that has come, out of those that have; null: none yet.
  Parcel* find(int from, int tag);
  const std::byte* data(const Parcel& parcel) const { return memory_->at(parcel.from, parcel.offset); }
  /// Its receiver needs it no more: tells the sender.
  void take(Parcel& parcel);

 private:
  std::shared_ptr<NodeMemory> memory_;
  std::size_t made_ = 0;
  std::vector<Parcel*> free_;
  std::vector<Parcel*> arrived_;  // in the order of their posts
};

}  // namespace millrace::comm
