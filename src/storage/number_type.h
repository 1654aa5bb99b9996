// The number types that datasets store and programs read.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace millrace::storage {

enum class NumberType { uint8, int32, int64, uint64, float32, float64 };

std::string_view name_of(NumberType type);  ///< "uint8"
std::size_t size_of(NumberType type);       ///< in bytes

template <class T>
constexpr NumberType number_type() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return NumberType::uint8;
  else if constexpr (std::is_same_v<T, std::int32_t>) return NumberType::int32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return NumberType::int64;
  else if constexpr (std::is_same_v<T, std::uint64_t>) return NumberType::uint64;
  else if constexpr (std::is_same_v<T, float>) return NumberType::float32;
  else {
    static_assert(std::is_same_v<T, double>, "not a number type of a dataset");
    return NumberType::float64;
  }
}

}  // namespace millrace::storage
