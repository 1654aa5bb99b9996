// Emitted YAML reads back as the same nodes.
#include "config/emit.h"

#include "tests/config/support.h"

namespace millrace::config {
namespace {

// Quotes matter only where the text could be taken for a number, a boolean or nothing.
bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (a.is_map() && a.keys[i].text != b.keys[i].text) return false;
    if (!same(a.items[i], b.items[i])) return false;
  }
  return true;
}

TEST(ToYaml, WritesBlocksAndFlows) {
  const std::string text =
      "name: quickstart\n"
      "plan:\n"
      "  stages: [[conv1, layer1.*], [fc]]\n"
      "  bucket_size: 25 MiB\n"
      "  annotations:\n"
      "    - tensor: blocks.0.weight\n"
      "      split: 0\n"
      "    - tensor: b\n"
      "      nested:\n"
      "        x: [1, 2]\n"
      "  none: []\n"
      "slowdown: {}\n"
      "pairs:\n"
      "  - - a: 1\n"
      "    - b: 2\n"
      "  - [c]\n";
  const Node root = load(text);
  EXPECT_EQ(to_yaml(root), text);
}

TEST(ToYaml, QuotesTextThatLooksLikeSomethingElse) {
  for (const char* text :
       {"1e3",  "010",    "5",      "-.5",       "true",        "no",         "Off",       "null", "~",
        "",     " a",     "a ",     "a: b",      "a #b",        "*x",         "&x",        "- a",  "---",
        "[a]",  "{name}", "it's",   "say \"x\"", "back\\slash", "two\nlines", "tab\there", "\x01", ".inf",
        "0x10", "@a",     "Zürich", "<<",        "a,b",         "?",          "! x",       "%x",   "| x"}) {
    Node root = Node::map();
    root.add(text[0] == '\0' ? "key" : text, Node::quote(text));
    root.add("list", Node::sequence({Node::quote(text), Node::quote("b")}));
    Problems problems;
    const Node back = load_text(to_yaml(root), exp_yaml(), problems);
    EXPECT_TRUE(same(root, back)) << to_yaml(root);
  }
  EXPECT_EQ(to_yaml(Node::quote("1e3")), "\"1e3\"\n");
  EXPECT_EQ(to_yaml(Node::quote("no")), "\"no\"\n");
  EXPECT_EQ(to_yaml(Node::plain("1e3")), "1e3\n");
  EXPECT_EQ(to_yaml(Node::quote("../data/x-1.h5")), "../data/x-1.h5\n");
}

TEST(ToYaml, KeepsNumbersNumbersAndTextText) {
  const Node back = load(to_yaml(load("a: 5\nb: \"5\"\nc: true\nd: 'true'\ne: ~\nf: '~'\n")));
  EXPECT_FALSE(back.find("a")->quoted);
  EXPECT_TRUE(back.find("b")->quoted);
  EXPECT_FALSE(back.find("c")->quoted);
  EXPECT_TRUE(back.find("d")->quoted);
  EXPECT_TRUE(back.find("e")->is_null());
  EXPECT_EQ(back.find("f")->text, "~");
}

TEST(ToNode, ValuesReadBackExactly) {
  const std::vector<std::pair<OptionType, Value>> cases{
      {Boolean{}, true},
      {Integer{}, std::int64_t{-9223372036854775807}},
      {Real{}, 0.1},
      {Real{}, 1e-300},
      {Text{}, std::string("1e3")},
      {IntegerList{}, std::vector<std::int64_t>{1, 2}},
      {Duration{}, Seconds(1.0 / 3.0)},
      {Duration{}, Seconds(1e-5)},
      {Size{}, Bytes(9007199254740993)},
  };
  for (const auto& [type, value] : cases) {
    const std::string text = to_yaml(to_node(value));
    EXPECT_EQ(parse_value(type, text), value) << text;
  }
  Values values;
  values.set("order", std::string("best"));
  values.set("bucket", Bytes(25));
  EXPECT_EQ(to_yaml(to_node(values)), "bucket: 25 B\norder: best\n");
}

}  // namespace
}  // namespace millrace::config
