// Seconds, bytes, operations and their rates as types, so that a unit cannot be lost between rooms.
#pragma once

#include <compare>
#include <cstdint>

namespace millrace {

/// A number with a unit. Adds to its own kind only; scales by plain numbers; the ratio of two is a plain number.
template <class Unit, class Number>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Number value) : value_(value) {}

  constexpr Number value() const { return value_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { value_ += other.value_; return *this; }
  constexpr Quantity& operator-=(Quantity other) { value_ -= other.value_; return *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, Number factor) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator*(Number factor, Quantity a) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator/(Quantity a, Number divisor) { return Quantity(a.value_ / divisor); }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Number value_{};
};

using Seconds = Quantity<struct SecondsUnit, double>;
using Bytes = Quantity<struct BytesUnit, std::int64_t>;
using Flops = Quantity<struct FlopsUnit, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondUnit, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondUnit, double>;

constexpr Seconds operator/(Bytes amount, BytesPerSecond rate) {
  return Seconds(static_cast<double>(amount.value()) / rate.value());
}
constexpr Seconds operator/(Flops amount, FlopsPerSecond rate) { return Seconds(amount.value() / rate.value()); }

inline namespace literals {
constexpr Seconds operator""_s(unsigned long long v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_s(long double v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_ms(unsigned long long v) { return Seconds(static_cast<double>(v) * 1e-3); }
constexpr Bytes operator""_B(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v)); }
constexpr Bytes operator""_KiB(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v) << 10); }
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v) << 20); }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v) << 30); }
}  // namespace literals

}  // namespace millrace
