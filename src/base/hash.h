// Digests of names and bytes (xxHash3): stable across runs, ranks and machines of one byte order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

/// 64-bit hash of a name or of raw bytes.
std::uint64_t hash64(std::string_view text);
std::uint64_t hash64(std::span<const std::byte> bytes);

/// 128-bit hash as 32 hexadecimal digits: identity of graphs, plans and sweep cells.
std::string digest(std::string_view text);

}  // namespace millrace
