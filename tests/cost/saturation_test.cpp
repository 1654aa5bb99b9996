// What a device reaches grows with the size of the operator.
#include "cost/saturation.h"

#include <gtest/gtest.h>

#include "base/errors.h"

namespace millrace::cost {
namespace {

cluster::Device device() {
  cluster::Device d;
  d.name = "d";
  d.flops["bf16"] = FlopsPerSecond(100);
  d.bandwidth = BytesPerSecond(10);
  d.efficiency = {{"matmul", 0.5}, {"memory", 0.8}};
  d.ramp = {{"matmul", Seconds(2)}};
  return d;
}

TEST(Saturation, HalfOfTheRateAtTheHalfSize) {
  const DeviceRates rates = device_rates(device(), "bf16");
  EXPECT_DOUBLE_EQ(rates.matmul.rate, 50);
  EXPECT_DOUBLE_EQ(rates.matmul.half(), 100);
  EXPECT_DOUBLE_EQ(rates.matmul.time(100).value(), 4);  // 25 a second
  EXPECT_DOUBLE_EQ(rates.matmul.time(1e6).value(), 20002);
  EXPECT_DOUBLE_EQ(rates.matmul.time(0).value(), 2);
}

TEST(Saturation, ClassesWithoutFiguresReachTheirPeak) {
  const DeviceRates rates = device_rates(device(), "bf16");
  EXPECT_DOUBLE_EQ(rates.memory.time(80).value(), 10);
  EXPECT_DOUBLE_EQ(rates.attention.rate, 10);
  EXPECT_DOUBLE_EQ(rates.fused_attention.rate, 100);
}

TEST(Saturation, AnUnknownPrecisionIsRefused) { EXPECT_THROW(device_rates(device(), "fp64"), InvalidInput); }

}  // namespace
}  // namespace millrace::cost
