// Whether the tensors of a device exist.
#pragma once

#include <cstdint>

namespace millrace::kernels {

enum class Storage : std::uint8_t {
  real,
  none  ///< sizes only: every pointer to a tensor is null, and whoever moves tensors leaves null alone
};

}  // namespace millrace::kernels
