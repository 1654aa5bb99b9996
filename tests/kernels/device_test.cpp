// Devices by name and precision.
#include "kernels/device.h"

#include <gmock/gmock.h>

#include "base/errors.h"

namespace millrace::kernels {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(MakeDevice, AutoTakesTheFastOneThatOffersThePrecision) {
  EXPECT_EQ(make_device("auto", Precision::fp32)->name(), "onednn");
  EXPECT_EQ(make_device("auto", Precision::bf16)->name(), "onednn");
  EXPECT_EQ(make_device("auto", Precision::fp64)->name(), "reference");
  EXPECT_EQ(make_device("reference", Precision::fp32)->name(), "reference");
  EXPECT_EQ(make_device("onednn", Precision::fp32)->name(), "onednn");
}

TEST(MakeDevice, RefusesWhatItDoesNotOffer) {
  EXPECT_THAT([] { make_device("onednn", Precision::fp64); },
              ThrowsMessage<InvalidInput>(HasSubstr("fp32 and bf16 only; allowed in fp64: auto, reference")));
  EXPECT_THAT([] { make_device("onedn", Precision::fp32); },
              ThrowsMessage<InvalidInput>(
                  HasSubstr("unknown kernels 'onedn' (did you mean 'onednn'?); valid: auto, reference, onednn")));
}

}  // namespace
}  // namespace millrace::kernels
