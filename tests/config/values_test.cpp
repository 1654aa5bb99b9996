// Option types in words, scalars read as each type, defaults.
#include "config/values.h"

#include <stdexcept>

#include <gmock/gmock.h>

#include "tests/config/support.h"

namespace millrace::config {
namespace {

TEST(Allowed, SaysWhatAValueMayBe) {
  EXPECT_EQ(allowed(Boolean{}), "true or false");
  EXPECT_EQ(allowed(Text{}), "text");
  EXPECT_EQ(allowed(Integer{}), "integer");
  EXPECT_EQ(allowed(Integer{1}), "integer, at least 1");
  EXPECT_EQ(allowed(Integer{.maximum = 9}), "integer, at most 9");
  EXPECT_EQ(allowed(Real{0.0, 0.1}), "number, 0 to 0.1");
  EXPECT_EQ(allowed(OneOf{{"dp", "exact"}}), "one of: dp, exact");
  EXPECT_EQ(allowed(IntegerList{1}), "list of integers, each at least 1");
  EXPECT_EQ(allowed(Duration{}), "number with a unit of time (ns, us, ms, s, min, h), such as 10 us");
}

TEST(ParseValue, ReadsEachType) {
  EXPECT_EQ(parse_value(Boolean{}, "true"), Value(true));
  EXPECT_EQ(parse_value(Integer{}, "-3"), Value(std::int64_t{-3}));
  EXPECT_EQ(parse_value(Real{}, "1e-4"), Value(1e-4));
  EXPECT_EQ(parse_value(Real{}, "2"), Value(2.0));
  EXPECT_EQ(parse_value(Text{}, "no"), Value(std::string("no")));
  EXPECT_EQ(parse_value(Text{}, "\"\""), Value(std::string()));
  EXPECT_EQ(parse_value(OneOf{{"off", "on"}}, "\"off\""), Value(std::string("off")));
  EXPECT_EQ(parse_value(IntegerList{}, "[512, 512]"), Value(std::vector<std::int64_t>{512, 512}));
  EXPECT_EQ(parse_value(IntegerList{}, "[]"), Value(std::vector<std::int64_t>{}));
  EXPECT_EQ(parse_value(Duration{}, "10 s"), Value(Seconds(10.0)));
  EXPECT_EQ(parse_value(Size{}, "16GiB"), Value(Bytes(std::int64_t{16} << 30)));
}

struct Refused {
  OptionType type;
  const char* written;
  const char* message;
};

TEST(ParseValue, RefusesWithFoundAndAllowed) {
  const std::vector<Refused> cases{
      {Integer{1}, "1e3", "found '1e3', allowed: integer, at least 1"},
      {Integer{1}, "0.1", "found '0.1', allowed: integer, at least 1"},
      {Integer{1}, "0", "found '0', allowed: integer, at least 1"},
      {Integer{}, "010", "found '010', allowed: integer (no leading zero)"},
      {Integer{}, "\"5\"", "found \"5\", allowed: integer"},
      {Integer{}, "", "found nothing, allowed: integer"},
      {Integer{}, "[1]", "found a list, allowed: integer"},
      {Integer{}, "9223372036854775808", "found '9223372036854775808', allowed: integer (too large for 64 bits)"},
      {Real{0.0, 1.0}, "1.5", "found '1.5', allowed: number, 0 to 1"},
      {Real{}, "1e-400", "found '1e-400', allowed: number (too small for 64 bits)"},
      {Real{}, "1e400", "found '1e400', allowed: number (too large for 64 bits)"},
      {Real{}, ".nan", "found '.nan', allowed: number"},
      {Boolean{}, "yes", "found 'yes', allowed: true or false"},
      {Boolean{}, "1", "found '1', allowed: true or false"},
      {Boolean{}, "True", "found 'True', allowed: true or false"},
      {Boolean{}, "\"true\"", "found \"true\", allowed: true or false"},
      {Text{}, "{a: 1}", "found a map, allowed: text"},
      {OneOf{{"dp", "exact"}}, "dpp", "found 'dpp', allowed: one of: dp, exact (did you mean 'dp'?)"},
      {IntegerList{1}, "512", "found '512', allowed: list of integers, each at least 1"},
      {IntegerList{1}, "[1, 0, x]",
       "[1]: found '0', allowed: integer, at least 1\n[2]: found 'x', allowed: integer, at least 1"},
      {Duration{}, "10",
       "found '10', allowed: number with a unit of time (ns, us, ms, s, min, h), such as 10 us (the unit is missing)"},
  };
  for (const Refused& c : cases) {
    EXPECT_EQ(refusal([&] { parse_value(c.type, c.written); }), c.message) << c.written;
  }
}

TEST(Defaults, AreReadAsTheirTypes) {
  const Options options{{"order", "node order", OneOf{{"best", "cluster"}}, "best"},
                        {"thinning", "step", Real{0.0, 0.1}, "0.001"},
                        {"time_limit", "limit", Duration{}, "10 s"},
                        {"chunks", "how many", Integer{1}, "2"},
                        {"hidden", "widths", IntegerList{1}, "[512, 512]"},
                        {"bucket", "size", Size{}, "25 MiB"},
                        {"tied", "shared", Boolean{}, "true"},
                        {"layers", "must be given", Integer{1}, ""}};
  const Values values = defaults(options);
  EXPECT_EQ(values.text("order"), "best");
  EXPECT_EQ(values.real("thinning"), 0.001);
  EXPECT_EQ(values.duration("time_limit"), Seconds(10.0));
  EXPECT_EQ(values.integer("chunks"), 2);
  EXPECT_THAT(values.integers("hidden"), testing::ElementsAre(512, 512));
  EXPECT_EQ(values.size("bucket"), 25_MiB);
  EXPECT_TRUE(values.boolean("tied"));
  EXPECT_FALSE(values.has("layers"));
}

TEST(Defaults, ThatBreakTheirOwnTypeAreAFaultOfTheProgram) {
  EXPECT_THROW(defaults({{"chunks", "", Integer{1}, "0"}}), std::logic_error);
}

TEST(Values, RefuseAnUnknownNameAndAnotherType) {
  Values values;
  values.set("chunks", std::int64_t{2});
  EXPECT_THROW(values.integer("chunk"), std::logic_error);
  EXPECT_THROW(values.real("chunks"), std::logic_error);
}

}  // namespace
}  // namespace millrace::config
