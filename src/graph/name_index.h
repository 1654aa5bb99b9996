// Positions by name, without copies of the names: those stay in the list that the positions are of.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace millrace {

/// A hash table with linear probing. A slot keeps part of the name's hash, so that names are read only where they are
/// (almost surely) equal, and never when the table grows: graphs have millions of them. `name_of(position)` tells the
/// name at a position that was inserted.
class NameIndex {
 public:
  /// Makes room for so many names at once.
  void reserve(std::size_t names);

  /// The position of `name`; -1 when there is none.
  template <class NameOf>
  std::int32_t find(std::string_view name, const NameOf& name_of) const {
    return slots_.empty() ? -1 : slots_[slot_of(name, tag_of(name), name_of)].position;
  }

  /// False when the name is there already.
  template <class NameOf>
  bool insert(std::string_view name, std::int32_t position, const NameOf& name_of) {
    if (count_ + count_ / 3 >= slots_.size()) reserve(count_ + 1);
    const std::uint32_t tag = tag_of(name);
    Slot& slot = slots_[slot_of(name, tag, name_of)];
    if (slot.position >= 0) return false;
    slot = {tag, position};
    ++count_;
    return true;
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::int32_t position = -1;  // -1: free
  };

  static std::uint32_t tag_of(std::string_view name) { return static_cast<std::uint32_t>(hash64(name)); }

  /// Where the name is, or the free slot where it would be.
  template <class NameOf>
  std::size_t slot_of(std::string_view name, std::uint32_t tag, const NameOf& name_of) const {
    std::size_t at = tag & (slots_.size() - 1);
    while (slots_[at].position >= 0 && !(slots_[at].tag == tag && name_of(slots_[at].position) == name)) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }

  void resize(std::size_t slots);

  std::vector<Slot> slots_;  // a power of two, at most three quarters taken
  std::size_t count_ = 0;
};

}  // namespace millrace
