// Chooses the device that an experiment names.
#include "kernels/device.h"

#include <array>
#include <string>
#include <utility>

#include "base/errors.h"
#include "base/text.h"
#include "kernels/onednn/onednn_device.h"
#include "kernels/reference/reference_device.h"

namespace millrace::kernels {

std::unique_ptr<Device> make_device(std::string_view kernels, Precision precision, std::shared_ptr<Variants> variants) {
  static const std::array<std::string, 3> kNames{"auto", "reference", "onednn"};
  const bool fp64 = precision == Precision::fp64;
  if (kernels == "reference" || (kernels == "auto" && fp64)) return make_reference_device();
  if (kernels != "auto" && kernels != "onednn") throw InvalidInput(unknown_name("kernels", kernels, kNames));
  if (fp64) throw InvalidInput("kernels 'onednn' compute in fp32 and bf16 only; allowed in fp64: auto, reference");
  return make_onednn_device(std::move(variants));
}

}  // namespace millrace::kernels
