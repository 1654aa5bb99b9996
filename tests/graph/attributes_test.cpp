// Typed access to attributes and their text.
#include "graph/attributes.h"

#include <gmock/gmock.h>

#include "base/errors.h"

namespace millrace {
namespace {

const Attributes kAll{{"yes", true},
                      {"three", 3},
                      {"half", 0.5},
                      {"word", std::string("erf")},
                      {"list", std::vector<std::int64_t>{1, 2}}};

std::string refusal(void (*ask)()) {
  try {
    ask();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Attributes, GiveWhatWasSet) {
  EXPECT_TRUE(kAll.boolean("yes"));
  EXPECT_EQ(kAll.integer("three"), 3);
  EXPECT_EQ(kAll.real("half"), 0.5);
  EXPECT_EQ(kAll.real("three"), 3.0);
  EXPECT_EQ(kAll.text("word"), "erf");
  EXPECT_EQ(kAll.integers("list"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_TRUE(kAll.has("list"));
  EXPECT_FALSE(kAll.has("lists"));
}

TEST(Attributes, RefuseMissingNamesAndOtherTypes) {
  EXPECT_EQ(refusal([] { kAll.integer("four"); }), "attribute 'four' must be given");
  EXPECT_EQ(refusal([] { kAll.integer("half"); }), "attribute 'half': found 0.5 (real), allowed: integer");
  EXPECT_EQ(refusal([] { kAll.boolean("three"); }), "attribute 'three': found 3 (integer), allowed: boolean");
  EXPECT_EQ(refusal([] { kAll.real("word"); }), "attribute 'word': found erf (text), allowed: real");
  EXPECT_EQ(refusal([] { kAll.text("list"); }), "attribute 'list': found [1, 2] (list of integers), allowed: text");
}

TEST(Attributes, TextTellsNeighboursApart) {
  EXPECT_EQ(format(Attribute(true)), "true");
  EXPECT_EQ(format(Attribute(1e-5)), "1e-05");
  EXPECT_NE(format(Attribute(0.1)), format(Attribute(0.1 + 1e-17 * 8)));
}

}  // namespace
}  // namespace millrace
