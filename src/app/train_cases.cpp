// A row of the list is an experiment with `case`, `ranks`, `peer` and goals beside its sections.
#include "app/train_cases.h"

#include <algorithm>

#include "config/document.h"
#include "config/problems.h"
#include "config/reader.h"

namespace millrace::app {
namespace {

using config::Field;
using config::Node;

// The case's name without what a file's name may not have.
std::string file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '/' || c == ','; }, '-');
  return name;
}

TrainCase read_case(const Field& field, Node& experiment) {
  config::Reader row(field);
  TrainCase one;
  one.name = row.required("case", config::Text{});
  one.ranks = static_cast<int>(row.get("ranks", config::Integer{1, 1 << 16}, std::int64_t{1}));
  one.peer = row.get("peer", config::Text{}, std::string());
  one.goal = row.optional("goal", config::Real{0});
  one.memory_goal = row.optional("memory_goal", config::Real{0});
  experiment = Node::map();
  experiment.where = field.where();
  experiment.add("name", Node::quote(file_name(one.name)));
  for (const char* key : {"model", "data", "cluster", "costs", "plan", "train", "seed"}) {
    if (const Field part = row.field(key)) experiment.add(key, *part.node());
  }
  return one;
}

}  // namespace

std::vector<TrainCase> read_train_cases(const std::filesystem::path& file) {
  config::Problems problems;
  const Node root = config::load_file(file, problems);
  std::vector<TrainCase> cases;
  std::vector<Node> experiments;
  {
    config::Reader reader(root, problems);
    reader.required("bench", config::OneOf{{"train"}});
    const Field rows = reader.field("rows");
    for (const Field& row : rows.items()) cases.push_back(read_case(row, experiments.emplace_back()));
  }
  problems.throw_if_any();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].experiment = experiment_from_node(experiments[i], problems);
  }
  return cases;
}

}  // namespace millrace::app
