// Digests of names and bytes (xxHash3): stable across runs, ranks and machines of one byte order.
#include "base/hash.h"

#include <new>

#include <fmt/format.h>
#include <xxhash.h>

namespace millrace {
namespace {

std::string hexadecimal(const XXH128_hash_t& hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

}  // namespace

std::uint64_t hash64(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string digest(std::string_view text) { return hexadecimal(XXH3_128bits(text.data(), text.size())); }

void DigestStream::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

DigestStream::DigestStream() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void DigestStream::add(std::string_view piece) { XXH3_128bits_update(state_.get(), piece.data(), piece.size()); }

std::string DigestStream::digest() const { return hexadecimal(XXH3_128bits_digest(state_.get())); }

}  // namespace millrace
