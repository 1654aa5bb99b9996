// What planning knows of one device: how fast it computes, how fast it reads memory and how much it holds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace millrace::cluster {

/// One device, which is one rank of the job. Figures are of the whole device (all cores of a rank).
struct Device {
  std::string name;
  std::map<std::string, FlopsPerSecond, std::less<>> flops{};  ///< peak by precision: fp32, bf16, fp64
  std::optional<Bytes> memory{};                               ///< none: not limited
  BytesPerSecond bandwidth{};                                  ///< of its memory
  std::map<std::string, double, std::less<>> efficiency{};     ///< reached part of the peak: conv, matmul; others 1
  std::map<std::string, Seconds, std::less<>> ramp{};          ///< of an operator without work, by kind; others 0
  double speed = 1.0;                                          ///< 0.5: every operator takes twice as long
  Seconds launch{};                                            ///< added to every operator

  bool operator==(const Device&) const = default;

  /// \throws InvalidInput  when the device has no figure for `precision`; names those that it has.
  FlopsPerSecond peak(std::string_view precision) const;
  /// Reached part of the peak for operators of `kind` ("conv", "matmul"); 1 where nothing is known. "memory" and
  /// "attention" are parts of the memory's bandwidth.
  double reached(std::string_view kind) const;
  /// Start, ramp-up and drain of operators of `kind`; 0 where nothing is known.
  Seconds ramp_of(std::string_view kind) const;
};

}  // namespace millrace::cluster
