// The table and its growth.
#include "graph/name_index.h"

#include <utility>

namespace millrace {

void NameIndex::reserve(std::size_t names) {
  constexpr std::size_t kFirst = 16;
  std::size_t slots = slots_.empty() ? kFirst : slots_.size();
  while (names + names / 3 >= slots) slots *= 2;
  if (slots != slots_.size()) resize(slots);
}

void NameIndex::resize(std::size_t slots) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots));
  for (const Slot& slot : old) {
    if (slot.position < 0) continue;
    std::size_t at = slot.tag & (slots - 1);
    while (slots_[at].position >= 0) at = (at + 1) & (slots - 1);
    slots_[at] = slot;
  }
}

}  // namespace millrace
