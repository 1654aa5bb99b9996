// Digests of names and bytes (xxHash3): stable across runs, ranks and machines of one byte order.
#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace millrace {

std::uint64_t hash64(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string digest(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace millrace
