// Plain numbers: what is one, and what only looks like one (REPORTS Y05).
#include "config/number.h"

#include <limits>

#include <gtest/gtest.h>

namespace millrace::config {
namespace {

TEST(ParseInteger, TakesSignAndDecimalDigits) {
  EXPECT_EQ(parse_integer("0").value, 0);
  EXPECT_EQ(parse_integer("+42").value, 42);
  EXPECT_EQ(parse_integer("-7").value, -7);
  EXPECT_EQ(parse_integer("9223372036854775807").value, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_integer("-9223372036854775808").value, std::numeric_limits<std::int64_t>::min());
}

TEST(ParseInteger, RefusesEverythingElse) {
  for (const char* text : {"", "+", "-", "1e3", "0.1", "1.0", "1_000", "0x10", "0o7", " 1", "1 ", "+-1", "one", "१"}) {
    EXPECT_EQ(parse_integer(text).fault, NumberFault::syntax) << text;
  }
  for (const char* text : {"010", "08", "-01", "00"}) {
    EXPECT_EQ(parse_integer(text).fault, NumberFault::leading_zero) << text;
  }
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "99999999999999999999999"}) {
    EXPECT_EQ(parse_integer(text).fault, NumberFault::too_large) << text;
  }
}

TEST(ParseReal, TakesPointAndExponent) {
  EXPECT_EQ(parse_real("1e-4").value, 1e-4);
  EXPECT_EQ(parse_real("1E+4").value, 1e4);
  EXPECT_EQ(parse_real("-0.5").value, -0.5);
  EXPECT_EQ(parse_real("+.5").value, 0.5);
  EXPECT_EQ(parse_real("5.").value, 5.0);
  EXPECT_EQ(parse_real("0").value, 0.0);
  EXPECT_EQ(parse_real("0e-999").fault, NumberFault::none);
  EXPECT_EQ(parse_real("0.1").value, 0.1);
}

TEST(ParseReal, RefusesWhatIsNoFiniteDecimal) {
  for (const char* text : {"", ".", "-", "e5", "1e", "1e+", "nan", "inf", ".inf", ".nan", "-inf", "0x1p3", "1_0.5",
                           "1.2.3", "1 ", "1,5"}) {
    EXPECT_EQ(parse_real(text).fault, NumberFault::syntax) << text;
  }
  EXPECT_EQ(parse_real("010.5").fault, NumberFault::leading_zero);
}

TEST(ParseReal, RefusesOverflowAndUnderflow) {
  for (const char* text : {"1e400", "-1e309", "1e99999999999"}) {
    EXPECT_EQ(parse_real(text).fault, NumberFault::too_large) << text;
  }
  for (const char* text : {"1e-400", "-1e-400", "1e-310", "0.1E-500", "1e-99999999999"}) {
    EXPECT_EQ(parse_real(text).fault, NumberFault::too_small) << text;
  }
}

}  // namespace
}  // namespace millrace::config
