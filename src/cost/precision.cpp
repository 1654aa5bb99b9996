// Sizes of real numbers.
#include "cost/precision.h"

#include <string>
#include <vector>

#include "base/errors.h"
#include "base/text.h"

namespace millrace::cost {

std::int64_t real_bytes(std::string_view precision) {
  if (precision == "fp32") return 4;
  if (precision == "bf16") return 2;
  if (precision == "fp64") return 8;
  const std::vector<std::string> valid{"fp32", "bf16", "fp64"};
  throw InvalidInput(unknown_name("precision", precision, valid));
}

}  // namespace millrace::cost
