// Comma-separated files: quotes, and what is refused with its place.
#include "config/csv.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "base/errors.h"

namespace millrace::config {
namespace {

using testing::HasSubstr;

CsvTable parse(std::string_view text) {
  Problems problems;
  CsvTable table = parse_csv(text, "t.csv", problems);
  problems.throw_if_any();
  return table;
}

std::string csv_refusal(std::string_view text) {
  try {
    parse(text);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, CellsWithCommasQuotesAndLineBreaks) {
  const CsvTable table = parse("a,b\r\n\"x, \"\"y\"\"\nz\",2\n\n,last");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][0].text, "x, \"y\"\nz");
  EXPECT_EQ(table.rows[0][1].text, "2");
  EXPECT_EQ(table.rows[1][0].text, "");
  EXPECT_EQ(table.rows[1][1].text, "last");
  EXPECT_EQ(table.rows[1][1].where.line, 5);
  EXPECT_EQ(table.rows[1][1].where.column, 2);
  EXPECT_EQ(*table.column("b"), 1u);
  EXPECT_FALSE(table.column("c"));
}

TEST(Csv, BrokenRowsAreNamedByLine) {
  EXPECT_THAT(csv_refusal("a,b\n1,2\n3\n"), HasSubstr("t.csv:3:1: found 1 cells, allowed: 2, as in the header"));
  EXPECT_THAT(csv_refusal("a,b\n1,\"2\n"), HasSubstr("t.csv:2:3: a quoted cell does not end"));
  EXPECT_THAT(csv_refusal("a\n\"1\"2\n"), HasSubstr("t.csv:2:4: found '2' after a quoted cell"));
  EXPECT_THAT(csv_refusal(""), HasSubstr("t.csv: holds nothing"));
}

TEST(Csv, OneFaultIsToldOnce) {
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n') + 1; };
  EXPECT_EQ(csv_refusal("\xEF\xBB\xBF"
                        "a,b\n1,2\n"),
            "");
  EXPECT_EQ(parse("\xEF\xBB\xBF"
                  "a,b\n1,2\n")
                .columns.front(),
            "a");
  for (const char* text : {"a,b,a\n1,2,3\n", "a,b\n1,\"2\n", "a,b\n\"1\"x,2\n", "\"a,b\n1,2\n", "a,b\n1\n"}) {
    EXPECT_EQ(lines(csv_refusal(text)), 1) << csv_refusal(text);
  }
  EXPECT_THAT(csv_refusal("a,b,a\n1,2,3\n"), HasSubstr("t.csv:1:5: a: given twice, allowed: once; column 1 is it too"));
}

TEST(Csv, AFileThatIsNotThereIsRefused) {
  Problems problems;
  EXPECT_THROW(load_csv("/nowhere/t.csv", problems), InvalidInput);
}

}  // namespace
}  // namespace millrace::config
