// Sizes, times and rates with their units (INTERFACES 9, "Scalars").
#include "config/quantity.h"

#include "tests/config/support.h"

namespace millrace::config {
namespace {

TEST(ParseSize, KnowsAllUnitsExactly) {
  EXPECT_EQ(parse_size("0 B"), Bytes(0));
  EXPECT_EQ(parse_size("9007199254740993 B"), Bytes(9007199254740993));  // no double holds it
  EXPECT_EQ(parse_size("1 kB"), Bytes(1000));
  EXPECT_EQ(parse_size("25MB"), Bytes(25'000'000));
  EXPECT_EQ(parse_size("1.1 GB"), Bytes(1'100'000'000));
  EXPECT_EQ(parse_size("2 TB"), Bytes(2'000'000'000'000));
  EXPECT_EQ(parse_size("1 KiB"), Bytes(1024));
  EXPECT_EQ(parse_size("25 MiB"), Bytes(26'214'400));
  EXPECT_EQ(parse_size("16GiB"), Bytes(17'179'869'184));
  EXPECT_EQ(parse_size("0.5   TiB"), Bytes(549'755'813'888));
}

TEST(ParseSize, RefusesWithTheUnits) {
  const std::string allowed =
      "allowed: number with a unit of size (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB), such as 12 GiB";
  EXPECT_EQ(refusal([] { parse_size("12"); }), "found '12', " + allowed + " (the unit is missing)");
  EXPECT_EQ(refusal([] { parse_size("0"); }), "found '0', " + allowed + " (the unit is missing)");
  EXPECT_EQ(refusal([] { parse_size("12 Gib"); }),
            "found '12 Gib', " + allowed + " (unknown unit 'Gib'; did you mean 'GiB'?)");
  EXPECT_EQ(refusal([] { parse_size("12 GB/s"); }), "found '12 GB/s', " + allowed + " (unknown unit 'GB/s')");
  EXPECT_EQ(refusal([] { parse_size("lots"); }), "found 'lots', " + allowed);
  EXPECT_EQ(refusal([] { parse_size("-1 GiB"); }), "found '-1 GiB', " + allowed + " (not negative)");
  EXPECT_EQ(refusal([] { parse_size("010 GiB"); }), "found '010 GiB', " + allowed + " (no leading zero)");
  EXPECT_EQ(refusal([] { parse_size("1.5 B"); }), "found '1.5 B', " + allowed + " (bytes are whole)");
  EXPECT_EQ(refusal([] { parse_size("1e-9 kB"); }), "found '1e-9 kB', " + allowed + " (bytes are whole)");
  EXPECT_EQ(refusal([] { parse_size("8388608 TiB"); }), "found '8388608 TiB', " + allowed + " (too large for 64 bits)");
  EXPECT_EQ(refusal([] { parse_size("1e30 B"); }), "found '1e30 B', " + allowed + " (too large for 64 bits)");
}

TEST(ParseDuration, GivesTheNearestDouble) {
  EXPECT_EQ(parse_duration("10 us"), Seconds(1e-5));
  EXPECT_EQ(parse_duration("3ns"), Seconds(3e-9));
  EXPECT_EQ(parse_duration("1.5 ms"), Seconds(1.5e-3));
  EXPECT_EQ(parse_duration("10 s"), Seconds(10.0));
  EXPECT_EQ(parse_duration("2 min"), Seconds(120.0));
  EXPECT_EQ(parse_duration("1e1 h"), Seconds(36000.0));
  EXPECT_EQ(parse_duration("0 us"), Seconds(0.0));
  EXPECT_EQ(refusal([] { parse_duration("10"); }),
            "found '10', allowed: number with a unit of time (ns, us, ms, s, min, h), such as 10 us (the unit is "
            "missing)");
  EXPECT_NE(refusal([] { parse_duration("1e308 h"); }), "");
}

TEST(ParseBandwidth, TellsBitsFromBytes) {
  EXPECT_EQ(parse_bandwidth("25 GB/s"), BytesPerSecond(25e9));
  EXPECT_EQ(parse_bandwidth("25 Gb/s"), BytesPerSecond(3.125e9));
  EXPECT_EQ(parse_bandwidth("100Mb/s"), BytesPerSecond(12.5e6));
  EXPECT_EQ(parse_bandwidth("8 kb/s"), BytesPerSecond(1000.0));
  EXPECT_EQ(parse_bandwidth("1 Tb/s"), BytesPerSecond(125e9));
  EXPECT_EQ(parse_bandwidth("2 GiB/s"), BytesPerSecond(2147483648.0));
  EXPECT_EQ(parse_bandwidth("5 B/s"), BytesPerSecond(5.0));
  const std::string message = refusal([] { parse_bandwidth("25 GB"); });
  EXPECT_NE(message.find("(unknown unit 'GB'; did you mean 'GB/s'?)"), std::string::npos) << message;
}

TEST(ParseComputeRate, CountsOperationsPerSecond) {
  EXPECT_EQ(parse_compute_rate("1 FLOP/s"), FlopsPerSecond(1.0));
  EXPECT_EQ(parse_compute_rate("93 GFLOP/s"), FlopsPerSecond(93e9));
  EXPECT_EQ(parse_compute_rate("15.7 TFLOP/s"), FlopsPerSecond(15.7e12));
  EXPECT_EQ(parse_compute_rate("1 PFLOP/s"), FlopsPerSecond(1e15));
  EXPECT_NE(refusal([] { parse_compute_rate("15.7 TFLOPS"); }).find("FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s"),
            std::string::npos);
}

}  // namespace
}  // namespace millrace::config
