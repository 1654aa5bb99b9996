// The keys of an operator, and what reads what.
#include "import/graph_assembler.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "config/number.h"
#include "config/quantity.h"
#include "config/scalar.h"
#include "graph/op_schema.h"

namespace millrace::import {

using config::Node;

namespace {

constexpr std::size_t kMostProblems = 100;  // Problems shows no more
const std::vector<std::string> kCommonKeys{"name", "kind", "inputs", "layer"};
const std::vector<std::string> kCostKeys{"name",       "kind",     "inputs",         "layer",
                                         "forward",    "backward", "backward_input", "backward_weight",
                                         "parameters", "output",   "saved"};

std::int64_t divided_up(Bytes bytes, std::int64_t by) { return bytes.value() / by + (bytes.value() % by != 0 ? 1 : 0); }

}  // namespace

// One operator; getters note problems and then return something without meaning.
class GraphAssembler::Op {
 public:
  Op(const Node& node, std::size_t index, config::Problems& problems)
      : node_(node), index_(index), problems_(problems), before_(problems.size()) {}

  const Node& node() const { return node_; }
  bool sound() const { return problems_.size() == before_; }
  std::string path(std::string_view key) const {
    return fmt::format("operators[{}]{}{}", index_, key.empty() ? "" : ".", key);
  }
  void refuse(const config::Where& where, std::string_view key, std::string_view reason) const {
    problems_.add(where, path(key), reason);
  }
  void expected(const Node& value, std::string_view key, std::string_view allowed) const {
    refuse(value.where, key, config::found_allowed(value, allowed));
  }

  std::string text(std::string_view key, bool required) const {
    const Node* value = node_.find(key);
    if (value == nullptr) {
      if (required) refuse(node_.where, key, "must be given");
      return "";
    }
    if (!value->is_scalar()) expected(*value, key, "text");
    return value->text;
  }

  std::optional<Seconds> duration(std::string_view key) const { return quantity<Seconds>(key, config::parse_duration); }
  Bytes size(std::string_view key, Bytes standard) const {
    return quantity<Bytes>(key, config::parse_size).value_or(standard);
  }

  // The row of the kind; an unknown one that is near to `cost` is read as that, so that its other mistakes are told
  // too.
  const OpSchema* schema() const {
    const std::string kind = text("kind", true);
    if (kind.empty()) return nullptr;
    for (const OpSchema* row : op_schemas()) {
      if (row->name == kind) return row;
    }
    std::vector<std::string> kinds;
    for (const OpSchema* row : op_schemas()) kinds.push_back(row->name);
    refuse(node_.find("kind")->where, "kind", unknown_name("operator kind", kind, kinds));
    const auto nearest = nearest_name(kind, kinds);
    return nearest == "cost" ? &op_schema(*nearest) : nullptr;
  }

  void check_attributes(const OpSchema& schema) const {
    std::vector<std::string> known = kCommonKeys;
    known.emplace_back("tied");
    for (const auto& [name, standard] : schema.attributes) {
      known.push_back(name);
      if (!standard && node_.find(name) == nullptr) {
        refuse(node_.where, name, fmt::format("must be given for kind {}", schema.name));
      }
    }
    check_keys(known);
  }

  void check_keys(const std::vector<std::string>& known) const {
    for (const config::Key& key : node_.keys) {
      if (key.text.starts_with("x-") || std::find(known.begin(), known.end(), key.text) != known.end()) continue;
      refuse(key.where, key.text, unknown_name("key", key.text, known));
    }
  }

 private:
  template <class Quantity, class Parse>
  std::optional<Quantity> quantity(std::string_view key, Parse parse) const {
    const Node* value = node_.find(key);
    if (value == nullptr) return std::nullopt;
    try {
      if (value->is_scalar()) return parse(value->text);
      expected(*value, key, "number with a unit");
    } catch (const InvalidInput& error) {
      refuse(value->where, key, error.what());
    }
    return Quantity{};
  }

  const Node& node_;
  std::size_t index_;
  config::Problems& problems_;
  std::size_t before_;
};

namespace {

std::optional<Attribute> to_integers(const Node& list) {
  std::vector<std::int64_t> values;
  for (const Node& item : list.items) {
    const auto value = config::parse_integer(item.text);
    if (!item.is_scalar() || item.quoted || value.fault != config::NumberFault::none) return std::nullopt;
    values.push_back(value.value);
  }
  return values;
}

// A value as what it looks like; the kind's own record checks the type.
std::optional<Attribute> to_attribute(const Node& value) {
  if (value.is_sequence()) return to_integers(value);
  if (!value.is_scalar()) return std::nullopt;
  if (value.quoted) return value.text;
  if (value.text == "true" || value.text == "false") return value.text == "true";
  if (config::number_length(value.text) != value.text.size()) return value.text;
  if (const auto whole = config::parse_integer(value.text); whole.fault == config::NumberFault::none)
    return whole.value;
  const auto real = config::parse_real(value.text);
  if (real.fault == config::NumberFault::none) return real.value;
  return std::nullopt;
}

}  // namespace

GraphAssembler::GraphAssembler(std::string name, std::int64_t micro_batch, config::Problems& problems)
    : builder_(std::move(name)), micro_batch_(micro_batch), problems_(problems) {}

void GraphAssembler::add_data(const config::Field& field, Role role) {
  const std::size_t before = problems_.size();
  Data data{.name = {}, .shape = {}, .role = role, .field = field};
  {
    config::Reader reader = field.map();
    data.name = reader.required("name", config::Text{});
    data.shape.dims = reader.required("shape", config::IntegerList{1});
    const std::string standard = role == Role::label ? "index" : "real";
    const std::string element = reader.get("element", config::OneOf{{"real", "index"}}, standard);
    data.shape.element = element == "index" ? ElementType::index : ElementType::real;
  }
  if (problems_.size() > before) {
    refused_.insert(data.name);
    return;
  }
  const auto same = [&data](const Data& other) { return data.name == other.name; };
  if (std::any_of(data_.begin(), data_.end(), same)) {
    field.refuse(fmt::format("name '{}' is used twice", data.name));
    return;
  }
  names_.push_back(data.name);
  ++data_count_;
  data_.push_back(std::move(data));
}

TensorId GraphAssembler::add_tensor(const Data& data) {
  try {
    return data.role == Role::label ? builder_.label(data.name, data.shape) : builder_.input(data.name, data.shape);
  } catch (const InvalidInput& error) {
    data.field.refuse(error.what());
    refused_.insert(data.name);
    return -1;
  }
}

TensorId GraphAssembler::find(const std::string& name) {
  const TensorId first_output = builder_.find_tensor(name + ".output");
  const TensorId known = first_output >= 0 ? first_output : builder_.find_tensor(name);
  if (known >= 0) return known;
  const auto data = std::find_if(data_.begin(), data_.end(), [&name](const Data& d) { return d.name == name; });
  if (data == data_.end()) return -1;
  const TensorId added = add_tensor(*data);
  data_.erase(data);
  return added;
}

bool GraphAssembler::read_inputs(const Op& op, std::vector<TensorId>& inputs) {
  const Node* list = op.node().find("inputs");
  if (list == nullptr) return true;
  if (!list->is_sequence()) {
    op.expected(*list, "inputs", "a list of operators");
    return false;
  }
  bool found_all = true;
  for (const Node& item : list->items) {
    if (!item.is_scalar()) {
      op.expected(item, "inputs", "the name of an operator");
      return false;
    }
    inputs.push_back(find(item.text));
    if (inputs.back() >= 0) continue;
    found_all = false;
    if (refused_.contains(item.text) || unresolved_.size() >= kMostProblems) continue;
    unresolved_.push_back({item.where, op.path("inputs"), item.text});
  }
  return found_all;
}

bool GraphAssembler::add_cost(const Op& op, bool reads_known, std::vector<TensorId> inputs) {
  op.check_keys(kCostKeys);
  const double forward = op.duration("forward").value_or(Seconds{}).value();
  const auto backward = op.duration("backward");
  const auto backward_input = op.duration("backward_input");
  const auto backward_weight = op.duration("backward_weight");
  if (backward && (backward_input || backward_weight)) {
    op.refuse(op.node().find("backward")->where, "backward",
              "given beside backward_input or backward_weight; allowed: the whole or its parts");
  }
  const Bytes output = op.size("output", Bytes{});
  const Bytes saved = op.size("saved", output);
  const Bytes parameters = op.size("parameters", Bytes{});
  if (!reads_known || !op.sound()) return false;
  const auto rows = static_cast<double>(micro_batch_);
  OpFigures figures{.forward_s = forward / rows,
                    .backward_input_s = backward_input.value_or(Seconds{}).value() / rows,
                    .backward_weight_s = backward_weight.value_or(Seconds{}).value() / rows,
                    .parameter_bytes = parameters.value(),
                    .output_bytes = divided_up(output, micro_batch_),
                    .saved_bytes = divided_up(saved, micro_batch_)};
  if (!backward_input && !backward_weight) {
    const double half = backward ? backward->value() / 2 : forward;
    figures.backward_input_s = figures.backward_weight_s = half / rows;
  }
  builder_.add_cost(op.text("name", true), std::move(inputs), figures, op.text("layer", false));
  return true;
}

bool GraphAssembler::add_kind(const Op& op, const OpSchema& schema, bool reads_known, std::vector<TensorId> inputs) {
  op.check_attributes(schema);
  OpSpec spec{.name = op.text("name", true),
              .kind = schema.name,
              .inputs = std::move(inputs),
              .layer = op.text("layer", false)};
  const Node& node = op.node();
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& key = node.keys[i].text;
    const bool is_common = std::find(kCommonKeys.begin(), kCommonKeys.end(), key) != kCommonKeys.end();
    if (is_common || key.starts_with("x-")) continue;
    if (key != "tied") {
      const auto value = to_attribute(node.items[i]);
      if (!value) op.expected(node.items[i], key, "a number, a word, true, false or a list of integers");
      if (value) spec.attributes.set(key, *value);
      continue;
    }
    if (!node.items[i].is_sequence()) op.expected(node.items[i], key, "a list of tensors");
    for (const Node& item : node.items[i].items) {
      spec.shared_parameters.push_back(item.is_scalar() ? builder_.find_tensor(item.text) : TensorId{-1});
      if (refused_.contains(item.text.substr(0, item.text.rfind('.')))) {
        reads_known = false;
      } else if (!item.is_null() && spec.shared_parameters.back() < 0) {
        op.expected(item, key, "a parameter of an operator above, or null");
      }
    }
  }
  if (!reads_known || !op.sound()) return false;
  builder_.add(std::move(spec));
  return true;
}

void GraphAssembler::add_operator(const Node& node) {
  const Op op(node, index_++, problems_);
  if (!node.is_map()) {
    op.expected(node, "", "a map such as {name: a, kind: cost, forward: 2 ms}");
    return;
  }
  const std::string name = op.text("name", true);
  const OpSchema* schema = op.schema();
  op.text("layer", false);
  std::vector<TensorId> inputs;
  const bool reads_known = read_inputs(op, inputs);
  bool added = false;
  try {  // an operator whose inputs are not known is not added, but what else is wrong with it is told
    if (schema != nullptr) {
      added = schema->explicit_figures ? add_cost(op, reads_known, std::move(inputs))
                                       : add_kind(op, *schema, reads_known, std::move(inputs));
    }
  } catch (const InvalidInput& error) {
    op.refuse(node.where, "", error.what());
  }
  if (added) {
    names_.push_back(name);
  } else {
    refused_.insert(name);
  }
  if (problems_.size() >= kMostProblems) throw InvalidInput(problems_.text());
}

// Below or nowhere: only the whole list tells.
void GraphAssembler::tell_unresolved() {
  constexpr std::size_t kMostNames = 10'000;  // to look for a near one among
  if (unresolved_.empty()) return;
  std::vector<std::string> near = names_;
  near.insert(near.end(), refused_.begin(), refused_.end());
  std::erase(near, "");  // of what has no name
  std::sort(near.begin(), near.end());
  for (const Unresolved& input : unresolved_) {
    if (refused_.contains(input.name) || std::find(names_.begin(), names_.end(), input.name) != names_.end()) {
      problems_.add(input.where, input.path,
                    fmt::format("found '{}', which stands below or is the operator itself; allowed: what stands above "
                                "(operators are in topological order, without cycles)",
                                input.name));
      continue;
    }
    const auto nearest = near.size() <= kMostNames ? nearest_name(input.name, near) : std::nullopt;
    const std::string hint = nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : "";
    problems_.add(input.where, input.path,
                  fmt::format("unknown input '{}'{}; allowed: an operator above, an input, a label", input.name, hint));
  }
}

void GraphAssembler::check() {
  for (const Data& data : data_) add_tensor(data);
  data_.clear();
  tell_unresolved();
  problems_.throw_if_any();
}

std::vector<std::string> GraphAssembler::operator_names() const {
  return {names_.begin() + static_cast<std::ptrdiff_t>(data_count_), names_.end()};
}

Graph GraphAssembler::finish() {
  problems_.throw_if_any();
  return builder_.build();
}

}  // namespace millrace::import
