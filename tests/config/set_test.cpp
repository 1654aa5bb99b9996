// --set path.to.key=VALUE (INTERFACES 9).
#include "config/set.h"

#include <array>

#include "config/emit.h"
#include "config/reader.h"
#include "tests/config/support.h"

namespace millrace::config {
namespace {

const std::array kForms{ShortForm{"plan.partitioner", "name"}, ShortForm{"cluster", ""}};

struct Outcome {
  std::string yaml;
  std::string problems;
};

Outcome after(std::string_view document, std::initializer_list<const char*> assignments) {
  Node root = load(document);
  Problems problems;
  for (const char* assignment : assignments) apply_set(root, assignment, kForms, problems);
  return {to_yaml(root), problems.text()};
}

TEST(Set, ReplacesAddsAndMakesMaps) {
  EXPECT_EQ(after("a: {b: 1}\n", {"a.b=2"}).yaml, "a:\n  b: 2\n");
  EXPECT_EQ(after("a: {b: 1}\n", {"a.c=x y"}).yaml, "a:\n  b: 1\n  c: x y\n");
  EXPECT_EQ(after("a: 1\n", {"p.q.r=true"}).yaml, "a: 1\np:\n  q:\n    r: true\n");
  EXPECT_EQ(after("a:\n", {"a.b=1"}).yaml, "a:\n  b: 1\n");
  EXPECT_EQ(after("a: 1\n", {"a={b: [1, 2]}"}).yaml, "a:\n  b: [1, 2]\n");
  EXPECT_EQ(after("a: 1\n", {"a=x=y"}).yaml, "a: \"x=y\"\n");
  EXPECT_EQ(after("a: 1\n", {"a=\"5\""}).yaml, "a: \"5\"\n");
}

TEST(Set, ReachesElementsAndReplacesWholeLists) {
  EXPECT_EQ(after("a: {list: [{k: 1}, {k: 2}]}\n", {"a.list[1].k=3"}).yaml, "a:\n  list:\n    - k: 1\n    - k: 3\n");
  EXPECT_EQ(after("m: [[1, 2], [3]]\n", {"m[0][1]=9"}).yaml, "m: [[1, 9], [3]]\n");
  EXPECT_EQ(after("list: [1, 2, 3]\n", {"list=[7]"}).yaml, "list: [7]\n");
}

TEST(Set, WritesShortFormsOut) {
  EXPECT_EQ(after("plan: {partitioner: dp}\n", {"plan.partitioner.order=best"}).yaml,
            "plan:\n  partitioner:\n    name: dp\n    order: best\n");
  EXPECT_EQ(after("plan: {partitioner: [dp, exact]}\n", {"plan.partitioner[1].time_limit=5 s"}).yaml,
            "plan:\n  partitioner:\n    - dp\n    - name: exact\n      time_limit: 5 s\n");
  EXPECT_EQ(after("cluster: model\n", {"cluster.devices=6"}).yaml, "cluster:\n  model: {}\n  devices: 6\n");
  EXPECT_EQ(after("plan: {partitioner: dp}\n", {"plan.partitioner=exact"}).yaml, "plan:\n  partitioner: exact\n");
}

TEST(Set, AliasedSectionsStayApart) {
  EXPECT_EQ(after("a: &a {lr: 0.5}\nb: *a\n", {"a.lr=1"}).yaml, "a:\n  lr: 1\nb:\n  lr: 0.5\n");
}

TEST(Set, RefusesWhatCannotBeReached) {
  const char* document = "name: x\nlist: [1, 2]\n";
  EXPECT_EQ(after(document, {"name.key=1"}).problems, "--set name.key=1: name: found 'x' on the way, allowed: a map");
  EXPECT_EQ(after(document, {"list.key=1"}).problems,
            "--set list.key=1: list: found a list on the way, allowed: a map; choose an element, as in list[0]");
  EXPECT_EQ(after(document, {"list[2]=1"}).problems,
            "--set list[2]=1: list: there is no element 2; the list has 2, counted from 0");
  EXPECT_EQ(after(document, {"name[0]=1"}).problems, "--set name[0]=1: name: found 'x' on the way, allowed: a list");
  EXPECT_EQ(after(document, {"name"}).problems, "--set name: found no '=', allowed: path.to.key=VALUE");
  for (const char* path : {"", ".a", "a.", "a..b", "a[x]", "a[-1]", "a[0", "a]", "[0]", "a[0]b"}) {
    const std::string assignment = std::string(path) + "=1";
    EXPECT_NE(after(document, {assignment.c_str()}).problems.find("as the path of a key, allowed: names and elements"),
              std::string::npos)
        << path;
  }
  EXPECT_EQ(after(document, {"a={b: 1, b: 2}"}).problems,
            "--set a={b: 1, b: 2}: b: duplicate key: given in line 1 and again in line 1");
}

TEST(Set, RefusesAValueThatIsNoYaml) {
  EXPECT_EQ(refusal([] { after("a: 1\n", {"a=[1"}); }), "--set a=[1: a '[' has no ']', or a ',' is missing");
}

TEST(Set, LaterErrorsCiteTheAssignment) {
  Node root = load("plan: {micro_batches: 4}\n");
  Problems problems;
  apply_set(root, "plan.micro_batches=1e3", kForms, problems);
  apply_set(root, "plan.micro_batch=1", kForms, problems);
  {
    Reader reader(root, problems);
    Reader plan = reader.field("plan").map();
    plan.get("micro_batches", Integer{1}, 1);
  }
  EXPECT_EQ(problems.text(),
            "--set plan.micro_batches=1e3: plan.micro_batches: found '1e3', allowed: integer, at least 1\n"
            "--set plan.micro_batch=1: plan.micro_batch: unknown key 'micro_batch' (did you mean 'micro_batches'?); "
            "valid: micro_batches");
}

TEST(SetValue, PutsANodeOfAnotherFile) {
  Node root = load("model: {name: mlp}\n");
  Problems problems;
  Node value = Node::quote("resnet50");
  value.where = {file_source("sweeps/sweep.yaml"), 8, 24};
  set_value(root, "model.name", value, kForms, problems);
  EXPECT_EQ(root.find("model")->find("name")->text, "resnet50");
  set_value(root, "model.name.x", value, kForms, problems);
  EXPECT_EQ(problems.text(), "sweeps/sweep.yaml:8:24: model.name: found \"resnet50\" on the way, allowed: a map");
}

}  // namespace
}  // namespace millrace::config
