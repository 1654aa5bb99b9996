// Doubling the table.
#include "graph/name_index.h"

#include <utility>

namespace millrace {

void NameIndex::grow() {
  constexpr std::size_t kFirst = 16;
  const std::vector<Slot> old = std::exchange(slots_, {});
  slots_.resize(old.empty() ? kFirst : 2 * old.size());
  for (const Slot& slot : old) {
    if (slot.position < 0) continue;
    std::size_t at = slot.tag & (slots_.size() - 1);
    while (slots_[at].position >= 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

}  // namespace millrace
