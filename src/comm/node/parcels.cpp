// A stack of parcels per receiver, that anybody pushes to without waiting and its owner empties at once.
#include "comm/node/parcels.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/errors.h"

namespace millrace::comm {
namespace {

constexpr int kBlock = 64;  // parcels made at a time
constexpr std::size_t kWaiting =
    1024;                     // parcels that may wait for their receives before anything is allocated for them
constexpr int kIndexAt = 48;  // bits of an offset; above: the index of the rank whose segment it is

std::uint64_t offset_in(std::uint64_t address) { return address & ((std::uint64_t{1} << kIndexAt) - 1); }

}  // namespace

Parcels::Parcels(std::shared_ptr<NodeMemory> memory) : memory_(std::move(memory)) { arrived_.reserve(kWaiting); }

Parcel* Parcels::post(int to, int tag, std::uint64_t offset, std::int64_t bytes, bool by_mpi) {
  if (free_.empty()) {
    auto* const first = reinterpret_cast<Parcel*>(memory_->take(kBlock * std::int64_t{sizeof(Parcel)}));
    if (first == nullptr) throw SystemError("no more memory that ranks of a node could share for a message");
    for (int i = kBlock - 1; i >= 0; --i) free_.push_back(new (first + i) Parcel());
    made_ += kBlock;
    free_.reserve(made_);
  }
  Parcel* const parcel = free_.back();
  free_.pop_back();
  parcel->offset = offset;
  parcel->bytes = bytes;
  parcel->from = memory_->index();
  parcel->tag = tag;
  parcel->by_mpi = by_mpi;
  parcel->is_taken.store(0, std::memory_order_relaxed);
  parcel->is_urgent.store(by_mpi ? 1 : 0, std::memory_order_relaxed);
  const std::uint64_t address =
      (static_cast<std::uint64_t>(memory_->index()) << kIndexAt) | *memory_->offset_of(parcel);
  std::atomic<std::uint64_t>& inbox = memory_->desk(to).inbox;
  std::uint64_t before = inbox.load(std::memory_order_relaxed);
  do {
    parcel->next = before;
  } while (!inbox.compare_exchange_weak(before, address, std::memory_order_seq_cst, std::memory_order_relaxed));
  return parcel;
}

bool Parcels::collect() {
  std::atomic<std::uint64_t>& inbox = memory_->desk(memory_->index()).inbox;
  if (inbox.load(std::memory_order_seq_cst) == 0) return false;
  const auto first = static_cast<std::ptrdiff_t>(arrived_.size());
  for (std::uint64_t address = inbox.exchange(0, std::memory_order_seq_cst); address != 0;) {
    auto* const parcel =
        reinterpret_cast<Parcel*>(memory_->at(static_cast<int>(address >> kIndexAt), offset_in(address)));
    arrived_.push_back(parcel);
    address = parcel->next;
  }
  std::reverse(arrived_.begin() + first, arrived_.end());
  return true;
}

Parcel* Parcels::find(int from, int tag) {
  const auto found = std::find_if(arrived_.begin(), arrived_.end(),
                                  [&](const Parcel* parcel) { return parcel->from == from && parcel->tag == tag; });
  if (found == arrived_.end()) return nullptr;
  Parcel* const parcel = *found;
  arrived_.erase(found);
  return parcel;
}

void Parcels::take(Parcel& parcel) {
  const int from = parcel.from;
  parcel.is_taken.store(1, std::memory_order_release);  // from here on it is its sender's
  memory_->desk(from).issuer.ring();
}

}  // namespace millrace::comm
