// Down-closed sets of items (ideals), each kept once, found by their items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace::partitioners::max_load {

/// Numbers ideals from 0 on in the order in which they come; a set of n items takes n bits and about 8 bytes.
class IdealSet {
 public:
  using Words = std::span<const std::uint64_t>;
  static constexpr std::uint32_t kNone = 0xffffffffU;

  explicit IdealSet(std::size_t items);

  std::size_t words() const { return words_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(hashes_.size()); }
  Words ideal(std::uint32_t id) const { return {bits_.data() + id * words_, words_}; }
  std::uint64_t hash(std::uint32_t id) const { return hashes_[id]; }

  /// A set's hash is the exclusive or of those of its items.
  std::uint64_t item_hash(std::size_t item) const { return item_hashes_[item]; }

  /// kNone where it is not kept.
  std::uint32_t find(Words ideal, std::uint64_t hash) const;
  /// The number of the ideal, kept from now on.
  std::uint32_t insert(Words ideal, std::uint64_t hash);

  std::size_t bytes() const;

 private:
  std::size_t slot(Words ideal, std::uint64_t hash) const;
  void grow();

  std::size_t words_;
  std::vector<std::uint64_t> item_hashes_;
  std::vector<std::uint64_t> bits_;    // words_ for each ideal
  std::vector<std::uint64_t> hashes_;  // by ideal
  std::vector<std::uint32_t> table_;   // open addressing, size a power of two; kNone: free
};

}  // namespace millrace::partitioners::max_load
