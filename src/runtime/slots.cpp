// A free list for each executable.
#include "runtime/slots.h"

#include <algorithm>

#include "base/errors.h"

namespace millrace::runtime {

Slots::Slots(const Program& program, std::vector<std::vector<BoundMicroBatch>> bound)
    : training_(program.training), iterations_(program.overlap + 1), entries_(bound.size()) {
  for (std::size_t s = 0; s < bound.size(); ++s) {
    for (std::int64_t i = 0; i < iterations_; ++i) {
      entries_[s].insert(entries_[s].end(), bound[s].begin(), bound[s].end());
    }
    for (const BoundMicroBatch& at : bound[s]) {
      const auto known = std::find_if(pools_.begin(), pools_.end(),
                                      [&](const Pool& pool) { return pool.executable == at.executable; });
      if (at.executable != nullptr && known == pools_.end()) pools_.push_back({at.executable, {}, 0});
    }
  }
  for (Pool& pool : pools_) pool.free.reserve(static_cast<std::size_t>(pool.executable->bytes().slots));
  clear();
}

void Slots::clear() {
  for (auto& stage : entries_) {
    for (BoundMicroBatch& at : stage) at.slot = -1;
  }
  for (Pool& pool : pools_) {
    pool.free.clear();
    for (int slot = pool.executable->bytes().slots; slot-- > 0;) pool.free.push_back(slot);
    pool.next = 0;
  }
}

BoundMicroBatch& Slots::entry(std::int32_t stage, std::int64_t iteration, std::int32_t micro_batch) {
  auto& entries = entries_[static_cast<std::size_t>(stage)];
  const auto micro_batches = static_cast<std::int64_t>(entries.size()) / iterations_;
  return entries[static_cast<std::size_t>(iteration % iterations_ * micro_batches + micro_batch)];
}

Slots::Pool& Slots::pool_of(const kernels::Executable* executable) {
  return *std::find_if(pools_.begin(), pools_.end(), [&](const Pool& pool) { return pool.executable == executable; });
}

const BoundMicroBatch& Slots::at(std::int32_t stage, std::int64_t iteration, std::int32_t micro_batch) {
  BoundMicroBatch& at = entry(stage, iteration, micro_batch);
  if (at.slot >= 0 || at.executable == nullptr) return at;
  Pool& pool = pool_of(at.executable);
  if (!training_) {
    at.slot = pool.next;
    pool.next = (pool.next + 1) % pool.executable->bytes().slots;
    return at;
  }
  if (pool.free.empty()) throw Error(ExitCode::internal, "more live micro-batches than slots");
  at.slot = pool.free.back();
  pool.free.pop_back();
  return at;
}

void Slots::give_back(std::int32_t stage, std::int64_t iteration, std::int32_t micro_batch) {
  BoundMicroBatch& at = entry(stage, iteration, micro_batch);
  if (at.slot < 0) return;
  pool_of(at.executable).free.push_back(at.slot);
  at.slot = -1;
}

}  // namespace millrace::runtime
