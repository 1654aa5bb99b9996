// A number with its noun, for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

/// "1 stage", "2 stages", "2 micro-batches".
inline std::string counted(std::int64_t number, std::string_view noun) {
  return std::to_string(number).append(" ").append(noun).append(number == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

}  // namespace millrace
