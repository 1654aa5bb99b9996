// Digests of names and bytes (xxHash3): stable across runs, ranks and machines of one byte order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;  // of xxHash

namespace millrace {

/// 64-bit hash of a name or of raw bytes.
std::uint64_t hash64(std::string_view text);
std::uint64_t hash64(std::span<const std::byte> bytes);

/// 128-bit hash as 32 hexadecimal digits: identity of graphs, plans and sweep cells.
std::string digest(std::string_view text);

/// The digest of a text that comes in pieces: that of all of them joined.
class DigestStream {
 public:
  DigestStream();

  void add(std::string_view piece);
  std::string digest() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace millrace
