// Rounds in shared memory: who has come, which part is next, how many are done.
#include "comm/node/shared_sum.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include <sys/mman.h>

namespace millrace::comm {
namespace {

constexpr std::int64_t kPart = std::int64_t{256} << 10;

// The values of a member, which are asked for one by one: whoever adds makes no list of them, so it allocates nothing.
template <class T, class Place>
T* values_of(const Place& place, std::size_t member) {
  return reinterpret_cast<T*>(place(member));
}

// Neighbours first, then pairs of pairs: the last bits do not change when members that add zeros stand between others,
// as the owners of a tied parameter do when its uses are on stages of their own.
template <class T, class Place>
void add_in_pairs(const Place& place, std::size_t begin, std::size_t members, std::int64_t first, std::int64_t count,
                  T* sum) {
  if (members == 1) {
    std::copy_n(values_of<T>(place, begin) + first, count, sum);
    return;
  }
  constexpr std::int64_t kBlock = 512;
  std::array<T, kBlock> right;
  const std::size_t half = std::bit_ceil(members) / 2;
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const std::int64_t size = std::min(kBlock, count - at);
    add_in_pairs(place, begin, half, first + at, size, sum + at);
    add_in_pairs(place, begin + half, members - half, first + at, size, right.data());
    for (std::int64_t i = 0; i < size; ++i) sum[at + i] += right[static_cast<std::size_t>(i)];
  }
}

// A block at a time stays in the first cache.
template <class T, class Place>
void add_up(const Place& place, std::size_t members, std::int64_t count) {
  if (members == 2) {
    T* const a = values_of<T>(place, 0);
    T* const b = values_of<T>(place, 1);
    for (std::int64_t i = 0; i < count; ++i) {
      const T sum = a[i] + b[i];
      a[i] = sum;
      b[i] = sum;
    }
    return;
  }
  constexpr std::int64_t kBlock = 1024;
  std::array<T, kBlock> sum;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t size = std::min(kBlock, count - first);
    add_in_pairs(place, 0, members, first, size, sum.data());
    for (std::size_t m = 0; m < members; ++m) std::copy_n(sum.begin(), size, values_of<T>(place, m) + first);
  }
}

}  // namespace

// The offsets of the members' values follow it.
struct SharedSum::Round {
  std::atomic<std::uint64_t> uses;     // by earlier sums
  std::atomic<std::uint64_t> claim;    // the next part of a sum whose members have all arrived
  std::atomic<std::uint32_t> arrived;  // members
  std::atomic<std::uint32_t> left;     // members
  std::atomic<std::uint32_t> done;     // parts
  std::atomic<std::uint32_t> wanted;   // a member waits for the place
};

namespace {

constexpr std::uint32_t kRounds = 64;  // sums of a group that may be in flight
constexpr int kPartBits = 24;          // of a claim; above: the number of the sum + 1

std::uint64_t first_claim(const SumPart& sum) { return (sum.number + 1) << kPartBits; }
std::uint32_t parts_of(const SumPart& sum) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(1, (sum.bytes + kPart - 1) / kPart));
}
std::int64_t round_bytes(std::size_t members, std::size_t head) {
  const auto bytes = static_cast<std::int64_t>(head + members * sizeof(std::uint64_t));
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

std::int64_t SharedSum::block_bytes(std::size_t members) { return kRounds * round_bytes(members, sizeof(Round)); }

SharedSum::SharedSum(std::shared_ptr<NodeMemory> memory, std::vector<int> members, std::byte* block)
    : memory_(std::move(memory)), members_(std::move(members)), block_(block) {
  own_ = static_cast<std::size_t>(std::find(members_.begin(), members_.end(), memory_->index()) - members_.begin());
}

SharedSum::Round& SharedSum::round(std::uint64_t number) const {
  const std::int64_t place = static_cast<std::int64_t>(number % kRounds) * round_bytes(members_.size(), sizeof(Round));
  return *reinterpret_cast<Round*>(block_ + place);
}

std::uint64_t* SharedSum::offsets(Round& round) const { return reinterpret_cast<std::uint64_t*>(&round + 1); }

bool SharedSum::arrive(const SumPart& sum, std::uint64_t offset) const {
  Round& at = round(sum.number);
  if (at.uses.load(std::memory_order_seq_cst) != sum.number / kRounds) {
    at.wanted.store(1, std::memory_order_seq_cst);
    if (at.uses.load(std::memory_order_seq_cst) != sum.number / kRounds) return false;
  }
  offsets(at)[own_] = offset;
  if (at.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == members_.size()) {
    at.claim.store(first_claim(sum), std::memory_order_seq_cst);
  }
  return true;
}

bool SharedSum::is_ready(const SumPart& sum) const {
  return round(sum.number).claim.load(std::memory_order_seq_cst) >= first_claim(sum);
}

bool SharedSum::has_work(const SumPart& sum) const {
  const std::uint64_t claim = round(sum.number).claim.load(std::memory_order_seq_cst);
  return claim >= first_claim(sum) && claim < first_claim(sum) + parts_of(sum);
}

// A claim of a later sum: this one is over. Nothing else of the round may be read before a part is claimed.
bool SharedSum::work(const SumPart& sum) const {
  Round& at = round(sum.number);
  const std::uint32_t parts = parts_of(sum);
  const std::uint64_t first = first_claim(sum);
  bool worked = false;
  std::uint64_t claim = at.claim.load(std::memory_order_seq_cst);
  while (claim >= first && claim < first + parts) {
    if (!at.claim.compare_exchange_weak(claim, claim + 1, std::memory_order_acq_rel)) continue;
    worked = true;
    add_part(at, sum, static_cast<std::int64_t>(claim - first));
    if (at.done.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) {
      for (const int member : members_) memory_->desk(member).issuer.ring();
    }
    claim = at.claim.load(std::memory_order_acquire);
  }
  return worked;
}

// Pages of others leave this process again: what a rank holds is its own.
void SharedSum::add_part(Round& at, const SumPart& sum, std::int64_t part) const {
  const std::int64_t first = part * kPart;
  const std::int64_t bytes = std::min(kPart, sum.bytes - first);
  const auto place = [&](std::size_t m) { return memory_->at(members_[m], offsets(at)[m]) + first; };
  if (sum.element == Element::float64) {
    add_up<double>(place, members_.size(), bytes / element_bytes(Element::float64));
  } else {
    add_up<float>(place, members_.size(), bytes / element_bytes(Element::float32));
  }
  for (std::size_t m = 0; m < members_.size() && bytes == kPart; ++m) {
    if (m == own_) continue;
    const std::uintptr_t page = (reinterpret_cast<std::uintptr_t>(place(m)) + kPage - 1) / kPage * kPage;
    madvise(reinterpret_cast<void*>(page), static_cast<std::size_t>(kPart - kPage), MADV_DONTNEED);
  }
}

bool SharedSum::is_done(const SumPart& sum) const {
  return is_ready(sum) && round(sum.number).done.load(std::memory_order_acquire) == parts_of(sum);
}

void SharedSum::leave(const SumPart& sum) const {
  Round& at = round(sum.number);
  if (at.left.fetch_add(1, std::memory_order_acq_rel) + 1 < members_.size()) return;
  at.arrived.store(0, std::memory_order_relaxed);
  at.left.store(0, std::memory_order_relaxed);
  at.done.store(0, std::memory_order_relaxed);
  at.uses.fetch_add(1, std::memory_order_seq_cst);
  if (at.wanted.exchange(0, std::memory_order_seq_cst) == 0) return;
  for (const int member : members_) {
    memory_->desk(member).issuer.ring();
    memory_->desk(member).helper.ring();
  }
}

}  // namespace millrace::comm
