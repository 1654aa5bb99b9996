// Open addressing over the exclusive or of random numbers of the items; equal hashes are told apart by their bits.
#include "partitioners/common/max_load/ideal_set.h"

#include <algorithm>

#include "base/random.h"

namespace millrace::partitioners::max_load {

IdealSet::IdealSet(std::size_t items) : words_((items + 63) / 64), table_(64, kNone) {
  const Random random(0, "ideal hash");
  item_hashes_.reserve(items);
  for (std::size_t item = 0; item < items; ++item) item_hashes_.push_back(random.bits(item));
}

std::size_t IdealSet::slot(Words ideal, std::uint64_t hash) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = static_cast<std::size_t>(hash) & mask;
  while (table_[at] != kNone) {
    const std::uint32_t id = table_[at];
    if (hashes_[id] == hash && std::equal(ideal.begin(), ideal.end(), this->ideal(id).begin())) break;
    at = (at + 1) & mask;
  }
  return at;
}

std::uint32_t IdealSet::find(Words ideal, std::uint64_t hash) const { return table_[slot(ideal, hash)]; }

std::uint32_t IdealSet::insert(Words ideal, std::uint64_t hash) {
  std::size_t at = slot(ideal, hash);
  if (table_[at] != kNone) return table_[at];
  const std::uint32_t id = size();
  bits_.insert(bits_.end(), ideal.begin(), ideal.end());
  hashes_.push_back(hash);
  table_[at] = id;
  if (hashes_.size() * 2 > table_.size()) grow();
  return id;
}

void IdealSet::grow() {
  table_.assign(table_.size() * 2, kNone);
  const std::size_t mask = table_.size() - 1;
  for (std::uint32_t id = 0; id < size(); ++id) {
    std::size_t at = static_cast<std::size_t>(hashes_[id]) & mask;
    while (table_[at] != kNone) at = (at + 1) & mask;
    table_[at] = id;
  }
}

std::size_t IdealSet::bytes() const {
  return (item_hashes_.capacity() + bits_.capacity() + hashes_.capacity()) * sizeof(std::uint64_t) +
         table_.capacity() * sizeof(std::uint32_t);
}

}  // namespace millrace::partitioners::max_load
