// What a YAML document may be, and the one message for what it may not (REPORTS Y01, Y02, Y06, Y07).
#include "config/document.h"

#include <gmock/gmock.h>

#include "tests/config/support.h"

namespace millrace::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Document, KeepsOrderPlacesAndQuotes) {
  const Node root = load("name: no\ntrain:\n  lr: \"1e-4\"\n  steps: [1, 2]\nnothing:\n");
  ASSERT_EQ(root.keys.size(), 3U);
  EXPECT_EQ(root.keys[1].text, "train");
  EXPECT_EQ(root.items[0].text, "no");
  EXPECT_FALSE(root.items[0].quoted);
  const Node& lr = *root.find("train")->find("lr");
  EXPECT_EQ(lr.text, "1e-4");
  EXPECT_TRUE(lr.quoted);
  EXPECT_EQ(to_text(lr.where), "exp.yaml:3:7");
  EXPECT_EQ(to_text(root.find("train")->find("steps")->items[1].where), "exp.yaml:4:14");
  EXPECT_TRUE(root.find("nothing")->is_null());
  EXPECT_EQ(to_text(root.find("nothing")->where), "exp.yaml:5:1");
}

TEST(Document, AliasesAreCopies) {
  Node root = load("a: &a {lr: 0.5}\nb: *a\n");
  root.items[0].items[0].text = "99";
  EXPECT_EQ(root.find("b")->find("lr")->text, "0.5");
}

TEST(Document, RefusesAliasBombsAndLoops) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 1; k < 10; ++k) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_THAT(load_refusal(bomb), HasSubstr("unfold to more than a million values"));
  EXPECT_EQ(load_refusal("a: &a [1, *a]\n"), "exp.yaml:1:11: an alias inside what it stands for");
  EXPECT_THAT(load_refusal("a: *b\n"), StartsWith("exp.yaml:1:4: "));
}

TEST(Document, RefusesDuplicateKeysWithBothLines) {
  EXPECT_EQ(load_refusal("train:\n  lr: 0.1\n  steps: 3\n  lr: 0.01\nplan: {}\ntrain: {}\n"),
            "exp.yaml:4:3: train.lr: duplicate key: given in line 2 and again in line 4\n"
            "exp.yaml:6:1: train: duplicate key: given in line 1 and again in line 6");
  EXPECT_EQ(load_refusal("a:\n  - {b: 1, b: 2}\n"),
            "exp.yaml:2:12: a[0].b: duplicate key: given in line 2 and again in line 2");
  EXPECT_EQ(load_refusal("a: 1\n\"a\": 2\n"), "exp.yaml:2:1: a: duplicate key: given in line 1 and again in line 2");
}

TEST(Document, KeepsTheFirstOfDuplicates) {
  Problems problems;
  const Node root = load_text("a: 1\nb: 2\na: 3\nc: 4\n", exp_yaml(), problems);
  EXPECT_EQ(problems.size(), 1U);
  ASSERT_EQ(root.keys.size(), 3U);
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_EQ(root.find("c")->text, "4");
}

TEST(Document, RefusesMergeKeysAndTags) {
  EXPECT_EQ(load_refusal("base: &base {lr: 0.5}\nchild:\n  <<: *base\n  steps: 3\n"),
            "exp.yaml:3:3: child.<<: merge keys ('<<') are not supported; write the keys out");
  EXPECT_EQ(load_refusal("a: !!int 3\n"),
            "exp.yaml:1:4: a: tag 'tag:yaml.org,2002:int' is not supported; leave it out");
}

TEST(Document, RefusesARootThatIsNoMap) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n...\n", "~\n"}) {
    EXPECT_EQ(load_refusal(text), "exp.yaml:1:1: the document is empty; a map of keys is needed") << text;
  }
  EXPECT_EQ(load_refusal("hello\n"), "exp.yaml:1:1: found 'hello' as the whole document, allowed: a map of keys");
  EXPECT_EQ(load_refusal("a:1\n"),
            "exp.yaml:1:1: found 'a:1' as the whole document, allowed: a map of keys (a ':' needs a space behind it)");
  EXPECT_EQ(load_refusal("- 1\n"), "exp.yaml:1:1: found a list as the whole document, allowed: a map of keys");
}

TEST(Document, RefusesASecondDocument) {
  EXPECT_EQ(load_refusal("a: 1\n---\nb: 2\n"),
            "exp.yaml:2:1: a second document begins here, allowed: one; is a '---', an indent or a bracket wrong?");
  EXPECT_EQ(load_refusal("a: 1\n...\n"), "");
}

TEST(Document, RefusesTabsInTheIndentation) {
  EXPECT_EQ(load_refusal("train:\n\tlr: 1\n"), "exp.yaml:2:1: tab in the indentation; indent with spaces");
  EXPECT_EQ(load_refusal("train:\n  a: 1\n  \tlr: 1\n"), "exp.yaml:3:3: tab in the indentation; indent with spaces");
  EXPECT_EQ(load_refusal("a:\n\tb\n"), "exp.yaml:2:1: tab in the indentation; indent with spaces");
  EXPECT_EQ(load_refusal("a: 1\t# note\n\t\n\t# note\nb:\t2\n"), "");
  EXPECT_EQ(load_refusal("{\n\t\"a\": 1,\n\t\"b\": [1,\n\t\t2]\n}\n"), "");  // JSON
}

TEST(Document, RefusesWhatIsNoText) {
  EXPECT_EQ(load_refusal(std::string_view("\x89HDF\r\n\x1a\n\0", 9)),
            "exp.yaml:1:1: byte 0x89 is not text; a YAML file in UTF-8 is needed");
  EXPECT_EQ(load_refusal(std::string_view("a: 1\nb: \0\n", 10)),
            "exp.yaml:2:4: byte 0x00 is not text; a YAML file in UTF-8 is needed");
  EXPECT_THAT(load_refusal("a: \xc3\x28\n"), HasSubstr("byte 0xc3"));
  EXPECT_THAT(load_refusal("a: \xed\xa0\x80\n"), HasSubstr("byte 0xed"));
  EXPECT_EQ(load_refusal("a: Zürich ∂ 𝜃\n"), "");
  EXPECT_EQ(load_refusal("\xef\xbb\xbf"
                         "a: 1\r\nb: 2\r\n"),
            "");  // byte order mark, line ends of Windows
}

TEST(Document, RefusesDeepNesting) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(load_refusal("a: " + nested(63)), "");
  EXPECT_EQ(load_refusal("a: " + nested(64)), "exp.yaml:1:67: nested too deeply; at most 64 levels are read");
  EXPECT_THAT(load_refusal(std::string(20000, '[')), HasSubstr("nested too deeply; at most 64 levels are read"));
  EXPECT_THAT(load_refusal("a: " + std::string(20000, '{')), HasSubstr("nested too deeply"));
  std::string steps;
  for (int i = 0; i < 3000; ++i) steps += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(load_refusal(steps), HasSubstr("nested too deeply"));
  const std::string half = "a: &a " + nested(40) + "\n";
  EXPECT_THAT(load_refusal(half + "b: " + std::string(40, '[') + "*a" + std::string(40, ']') + "\n"),
              HasSubstr("nested too deeply"));
}

TEST(Document, SyntaxErrorsAreOneLineWithAPlace) {
  for (const char* text : {"a: [1, 2\n", "a: 'x\n", "a: b: c\n", "a: }\n", "  a: 1\nb: 2\n", "a: @x\n", "a: \"\\q\"\n",
                           "? [1]\n: 2\n", ": 1\n", "%YAML 9.0\n---\na: 1\n"}) {
    const std::string message = load_refusal(text);
    EXPECT_THAT(message, StartsWith("exp.yaml:")) << text;
    EXPECT_EQ(message.find('\n'), std::string::npos) << text;
  }
  EXPECT_EQ(load_refusal("a: 1\nb: c: d\n"),
            "exp.yaml:2:5: a ':' where no key can stand; is a quote, a line break or the indentation wrong?");
}

TEST(Document, RefusesAQuoteThatIsNotClosed) {
  EXPECT_EQ(load_refusal("name: x\na: 'b\nc: d\n"), "exp.yaml:2:4: a quote is not closed");
  EXPECT_EQ(load_refusal("a: &b \"x \\\"\n"), "exp.yaml:1:4: a quote is not closed");
  EXPECT_EQ(load_refusal("ü: 'it''s'\nb: [\"a\\\"\"]\n"), "");
  EXPECT_EQ(load_refusal("\xef\xbb\xbf"
                         "ü: 'a'"),
            "");
}

TEST(LoadFile, NamesTheFileAsGiven) {
  const Folder folder;
  Problems problems;
  const auto file = folder.write("exp.yaml", "a: 1\n");
  const Node root = load_file(file, problems);
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_EQ(root.where.source->folder, folder.path());
  EXPECT_EQ(refusal([&] { load_file("no/such.yaml", problems); }), "no/such.yaml: no such file");
  EXPECT_EQ(refusal([&] { load_file(folder.path(), problems); }),
            folder.path().string() + ": is a folder; a YAML file is needed");
  EXPECT_EQ(refusal([&] { load_file(folder.write("empty.yaml", ""), problems); }),
            (folder.path() / "empty.yaml").string() + ":1:1: the document is empty; a map of keys is needed");
}

}  // namespace
}  // namespace millrace::config
