// Explicit figures of a `cost` operator: what a profile or a user says of an operator that is planned and simulated
// but not trained (INTERFACES 5).
#pragma once

#include <cstdint>

namespace millrace {

/// Times are seconds of one sample on a device of speed 1; they grow in proportion to rows. Bytes of outputs and of
/// what backward keeps are per sample.
struct OpFigures {
  double forward_s = 0;
  double backward_input_s = 0;
  double backward_weight_s = 0;
  std::int64_t parameter_bytes = 0;
  std::int64_t output_bytes = 0;
  std::int64_t saved_bytes = 0;

  bool operator==(const OpFigures&) const = default;
};

}  // namespace millrace
