// Places in JSON: paths, lines and columns of keys, and reading a long list element by element.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "config/document.h"
#include "import/json_nodes.h"
#include "import/json_place.h"

namespace millrace::import {
namespace {

using nlohmann::json;
using testing::ElementsAre;

const std::string kText = "{\"a\": [1, \"}]\\\"\", {\"b\": null}],\n \"c\\u0064\": {\"e\": -1.5e3,\n\"f\": [ ]\n}}";

TEST(JsonPlace, FindsPathsAndLines) {
  const json document = json::parse(kText);
  const auto place = [&](const json& value) {
    const JsonPath path = path_of(document, value);
    return to_text(path) + ":" + std::to_string(line_of(kText, path));
  };
  EXPECT_EQ(place(document), ":1");
  EXPECT_EQ(place(document["a"][1]), "a[1]:1");
  EXPECT_EQ(place(document["a"][2]["b"]), "a[2].b:1");
  EXPECT_EQ(place(document["cd"]), "cd:2");
  EXPECT_EQ(place(document["cd"]["e"]), "cd.e:2");
  EXPECT_EQ(place(document["cd"]["f"]), "cd.f:3");
}

TEST(JsonPlace, CountsLinesAndColumnsFromOne) {
  EXPECT_EQ(line_and_column("ab\ncd", 0), std::pair(1, 1));
  EXPECT_EQ(line_and_column("ab\ncd", 2), std::pair(1, 3));
  EXPECT_EQ(line_and_column("ab\ncd", 4), std::pair(2, 2));
  EXPECT_EQ(line_and_column("ab\ncd", 99), std::pair(2, 3));
}

TEST(JsonNodes, KnowWhereTheyStand) {
  const auto source = config::file_source("x.json");
  const config::Node root = load_json(kText, source, "", nullptr);
  EXPECT_EQ(config::to_text(root.find("a")->items[2].keys[0].where), "x.json:1:20");
  EXPECT_EQ(config::to_text(root.find("cd")->find("f")->where), "x.json:3:6");
  EXPECT_EQ(root.find("cd")->find("e")->text, "-1.5e3");
  EXPECT_EQ(root.find("cd")->keys[1].where.line, 3);
  EXPECT_EQ(root.find("cd")->keys[1].where.column, 1);
}

TEST(JsonNodes, HandOverTheElementsOfOneList) {
  const std::string text = R"({"before": 1, "list": [{"n": 1}, 2, [3]], "after": {"list": [4]}})";
  std::vector<std::string> seen;
  const auto sink = [&](config::Node node) { seen.push_back(node.is_scalar() ? node.text : config::found(node)); };
  const config::Node root = load_json(text, nullptr, "list", sink);
  EXPECT_THAT(seen, ElementsAre("a map", "2", "a list"));
  EXPECT_TRUE(root.find("list")->items.empty());
  EXPECT_EQ(root.find("after")->find("list")->items.size(), 1U);
  const config::Node head = load_json(text, nullptr, "list", nullptr);
  EXPECT_EQ(head.items.size(), 3U);
  EXPECT_THROW(load_json(R"([[1]])", nullptr, "list", sink), InvalidInput);
}

}  // namespace
}  // namespace millrace::import
