// Reads the head of a graph file and hands its operators, one by one, to the assembler.
#include "import/graph_file.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "config/document.h"
#include "config/reader.h"
#include "import/carried_section.h"
#include "import/graph_assembler.h"
#include "import/json_nodes.h"
#include "import/json_place.h"
#include "import/names.h"

namespace millrace::import {
namespace {

using config::Node;
using config::Problems;

constexpr std::int64_t kMostSamples = std::int64_t{1} << 40;

struct Head {
  std::string name;
  std::int64_t micro_batch = 1;
  std::int64_t batch = 1;
};

Head read_head(const Node& root, const std::string& file, Problems& problems) {
  Head head;
  config::Reader reader(root, problems);
  reader.required("millrace_graph", config::Integer{1, 1});
  const config::Field name = reader.field("name");
  head.name = name ? name.as(config::Text{}) : graph_name(file);
  if (name.is_scalar() && !is_valid_name(head.name)) name.expected("text without white space, '*' and '?'");
  if (!is_valid_name(head.name)) head.name = "graph";  // to read on
  head.micro_batch = std::max<std::int64_t>(1, reader.get("micro_batch", config::Integer{1, kMostSamples}, 1));
  head.batch = reader.get("batch", config::Integer{1, kMostSamples}, head.micro_batch);
  for (const char* key : {"inputs", "labels"}) {
    const config::Field data = reader.field(key);
    if (data && !data.is_list()) data.expected("a list such as [{name: images, shape: [3, 32, 32]}]");
  }
  reader.field("carried");  // read when the operators are known
  const config::Field operators = reader.field("operators");
  if (!operators.is_list()) operators.expected("a list of operators");
  return head;
}

void add_data(const Node& root, const std::string& key, Role role, Problems& problems, GraphAssembler& assembler) {
  const Node* list = root.find(key);
  if (list == nullptr || !list->is_sequence()) return;
  for (const config::Field& item : config::Field(*list, key, problems).items()) assembler.add_data(item, role);
}

GraphFile assemble(const Node& root, const std::string& file, Problems& problems,
                   const std::function<void(GraphAssembler&)>& add_operators) {
  const Head head = read_head(root, file, problems);
  const Node* operators = root.find("operators");
  if (operators == nullptr || !operators->is_sequence()) problems.throw_if_any();
  GraphAssembler assembler(head.name, head.micro_batch, problems);
  add_data(root, "inputs", Role::input, problems, assembler);
  add_data(root, "labels", Role::label, problems, assembler);
  add_operators(assembler);
  if (assembler.operators() == 0) {
    config::Field(*root.find("operators"), "operators", problems).refuse("found no operators, allowed: at least one");
  }
  assembler.check();
  if (const Node* carried = root.find("carried")) {
    assembler.carry(read_carried(config::Field(*carried, "carried", problems), assembler.operator_names()));
  }
  return {assembler.finish(), head.batch};
}

}  // namespace

GraphFile read_graph_file(std::string_view text, const std::string& file) {
  Problems problems;
  const auto source = config::file_source(file);
  if (opens_like_json(without_byte_order_mark(text))) {
    const std::string streamed = "operators";
    const Node root = load_json(text, source, streamed, nullptr);  // the head first, wherever its keys stand
    return assemble(root, file, problems, [&](GraphAssembler& assembler) {
      load_json(text, source, streamed, [&](Node node) { assembler.add_operator(node); });
    });
  }
  const Node root = config::load_text(text, source, problems);
  return assemble(root, file, problems, [&](GraphAssembler& assembler) {
    for (const Node& node : root.find("operators")->items) assembler.add_operator(node);
  });
}

}  // namespace millrace::import
