// Adding operators to a graph: every check that the graph relies on afterwards is made here.
#include "graph/graph_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"

namespace millrace {
namespace {

constexpr std::size_t kMaximumRank = 8;  // letters of a shape come from one alphabet; the batch axis not counted

void check_name(std::string_view what, std::string_view name) {
  const bool clean = std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '*' || c == '?' || c == '\x7f';
  });
  if (name.empty() || !clean) {
    throw InvalidInput(fmt::format(
        "{} name: found '{}', allowed: one or more characters without white space, '*' and '?'", what, name));
  }
}

void check_dims(const std::string& name, const Dims& dims, std::int64_t least) {
  if (dims.size() > kMaximumRank) {
    throw InvalidInput(fmt::format("tensor '{}': found {} dimensions, allowed: at most {} beside the batch axis", name,
                                   dims.size(), kMaximumRank));
  }
  std::int64_t elements = 1;
  for (const std::int64_t extent : dims) {
    if (extent < least) {
      throw InvalidInput(
          fmt::format("tensor '{}': found dims {}, allowed: each at least {}", name, format(dims), least));
    }
    // 8-byte elements and a batch must still count in 64 bits.
    if (elements > std::numeric_limits<std::int32_t>::max() * std::int64_t{1024} / std::max<std::int64_t>(1, extent)) {
      throw InvalidInput(fmt::format("tensor '{}': found dims {}, allowed: at most 2^41 elements", name, format(dims)));
    }
    elements *= extent;
  }
}

[[noreturn]] void refuse_attribute(std::string_view name, const OpSchema& schema) {
  if (schema.attributes.empty()) throw InvalidInput(fmt::format("unknown attribute '{}'; this kind has none", name));
  std::vector<std::string> valid;
  for (const auto& declared : schema.attributes) valid.push_back(declared.first);
  throw InvalidInput(unknown_name("attribute", name, valid));
}

// The attributes that the kind declares, defaults filled in.
Attributes complete(const Attributes& given, const OpSchema& schema) {
  for (const auto& [given_name, value] : given.all()) {
    const std::string& name = given_name;
    const auto same = [&name](const auto& declared) { return declared.first == name; };
    if (std::none_of(schema.attributes.begin(), schema.attributes.end(), same)) refuse_attribute(name, schema);
  }
  Attributes all;
  for (const auto& [name, standard] : schema.attributes) {
    const Attribute* found = given.find(name);
    if (found == nullptr) {
      if (!standard) throw InvalidInput(fmt::format("attribute '{}' must be given", name));
      all.set(name, *standard);
      continue;
    }
    Attribute value = *found;
    if (standard && value.index() != standard->index()) {
      const auto* integer = std::get_if<std::int64_t>(&value);
      if (integer == nullptr || !std::holds_alternative<double>(*standard)) {
        throw InvalidInput(fmt::format("attribute '{}': found {} ({}), allowed: {}", name, format(value),
                                       type_name(value), type_name(*standard)));
      }
      value = static_cast<double>(*integer);
    }
    all.set(name, std::move(value));
  }
  return all;
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name) {
  check_name("graph", name);
  graph_.name_ = std::move(name);
}

void GraphBuilder::reserve(std::size_t operators, std::size_t tensors) {
  graph_.operators_.reserve(operators);
  graph_.tensors_.reserve(tensors);
  graph_.op_names_.reserve(operators);
  graph_.tensor_names_.reserve(tensors);
}

bool GraphBuilder::add_operator(Operator op) {
  const auto id = static_cast<OpId>(graph_.operators_.size());
  const auto name_of = [this](OpId other) -> std::string_view { return graph_.op(other).name; };
  if (!graph_.op_names_.insert(op.name, id, name_of)) return false;
  graph_.operators_.push_back(std::move(op));
  return true;
}

TensorId GraphBuilder::add_tensor(Tensor tensor) {
  check_dims(tensor.name, tensor.shape.dims, tensor.shape.element == ElementType::byte ? 0 : 1);
  const auto id = static_cast<TensorId>(graph_.tensors_.size());
  const auto name_of = [this](TensorId other) -> std::string_view { return graph_.tensor(other).name; };
  if (!graph_.tensor_names_.insert(tensor.name, id, name_of)) {
    throw InvalidInput(fmt::format("tensor name '{}' is used twice; names must differ", tensor.name));
  }
  graph_.tensors_.push_back(std::move(tensor));
  return id;
}

TensorId GraphBuilder::add_data(std::string name, TensorShape shape, Role role) {
  check_name("tensor", name);
  shape.batched = true;
  const TensorId id = add_tensor({.name = std::move(name), .shape = std::move(shape), .role = role});
  (role == Role::input ? graph_.inputs_ : graph_.labels_).push_back(id);
  return id;
}

TensorId GraphBuilder::input(std::string name, TensorShape shape) {
  return add_data(std::move(name), std::move(shape), Role::input);
}

TensorId GraphBuilder::label(std::string name, TensorShape shape) {
  return add_data(std::move(name), std::move(shape), Role::label);
}

const Tensor& GraphBuilder::operand(TensorId id, std::size_t position) const {
  if (id < 0 || static_cast<std::size_t>(id) >= graph_.tensors_.size()) {
    throw InvalidInput(fmt::format("input {}: found tensor number {}, allowed: a tensor added before", position, id));
  }
  const Tensor& tensor = graph_.tensor(id);
  if (tensor.role == Role::parameter || tensor.role == Role::buffer) {
    throw InvalidInput(fmt::format("input {}: found parameter or buffer '{}', allowed: data and outputs of operators",
                                   position, tensor.name));
  }
  return tensor;
}

std::vector<TensorShape> GraphBuilder::check_inputs(const OpSpec& spec, const OpSchema& schema) const {
  const auto count = static_cast<std::int64_t>(spec.inputs.size());
  if (count < schema.minimum_inputs || count > schema.maximum_inputs) {
    const std::string allowed = schema.minimum_inputs == schema.maximum_inputs
                                    ? fmt::format("{}", schema.minimum_inputs)
                                : schema.maximum_inputs == std::numeric_limits<int>::max()
                                    ? fmt::format("at least {}", schema.minimum_inputs)
                                    : fmt::format("{} to {}", schema.minimum_inputs, schema.maximum_inputs);
    throw InvalidInput(fmt::format("found {} inputs, allowed: {}", count, allowed));
  }
  std::vector<TensorShape> shapes;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const Tensor& tensor = operand(spec.inputs[i], i);
    if (tensor.role == Role::label && !schema.is_loss) {
      throw InvalidInput(fmt::format("input {}: found label '{}', which only a loss may read", i, tensor.name));
    }
    if (schema.is_loss && tensor.shape.element == ElementType::index && tensor.role != Role::label) {
      throw InvalidInput(
          fmt::format("input {}: found indices '{}' that are no label, allowed: a label", i, tensor.name));
    }
    const std::int64_t bytes = tensor.shape.element == ElementType::byte ? tensor.shape.elements_per_sample() : 4;
    if (bytes == 0 || bytes % 4 != 0) {
      throw InvalidInput(
          fmt::format("input {}: found {} bytes of '{}', allowed: 4-byte reals, at least one", i, bytes, tensor.name));
    }
    shapes.push_back(as_reals(tensor.shape));
  }
  return shapes;
}

void GraphBuilder::add_parameters(const OpSpec& spec, const std::vector<OwnedTensor>& owned, Operator& op) {
  if (spec.shared_parameters.size() > owned.size()) {
    throw InvalidInput(
        fmt::format("found {} shared parameters, allowed: at most {}", spec.shared_parameters.size(), owned.size()));
  }
  for (std::size_t i = 0; i < owned.size(); ++i) {
    const TensorId shared = i < spec.shared_parameters.size() ? spec.shared_parameters[i] : -1;
    if (shared < 0) {
      Tensor parameter{.name = spec.name + "." + owned[i].suffix,
                       .shape = {.dims = owned[i].dims, .batched = false},
                       .role = Role::parameter,
                       .initializer = owned[i].initializer};
      op.parameters.push_back(add_tensor(std::move(parameter)));
      graph_.parameters_.push_back(op.parameters.back());
      continue;
    }
    if (static_cast<std::size_t>(shared) >= graph_.tensors_.size() || graph_.tensor(shared).role != Role::parameter) {
      throw InvalidInput(
          fmt::format("shared {}: found tensor number {}, allowed: a parameter", owned[i].suffix, shared));
    }
    const Tensor& tensor = graph_.tensor(shared);
    if (tensor.shape.dims != owned[i].dims) {
      throw InvalidInput(fmt::format("shared {}: found '{}' {}, allowed: {}", owned[i].suffix, tensor.name,
                                     format(tensor.shape.dims), format(owned[i].dims)));
    }
    op.parameters.push_back(shared);
  }
}

TensorId GraphBuilder::add(OpSpec spec) {
  check_name("operator", spec.name);
  const std::string_view kind = spec.schema != nullptr ? spec.schema->name : spec.kind;
  try {
    const OpSchema& schema = spec.schema != nullptr ? *spec.schema : op_schema(kind);
    const auto id = static_cast<OpId>(graph_.operators_.size());
    if (graph_.find_op(spec.name) >= 0) throw InvalidInput("the name is used twice; names must differ");
    if (schema.is_loss && graph_.loss_ >= 0) {
      throw InvalidInput(fmt::format("found a second loss beside '{}', allowed: one", graph_.op(graph_.loss_).name));
    }
    Operator op{.name = spec.name, .schema = &schema};
    op.attributes = complete(spec.attributes, schema);
    op.inputs = spec.inputs;
    op.layer = spec.layer;
    const Inference inference = schema.infer(op.attributes, check_inputs(spec, schema));
    add_parameters(spec, inference.parameters, op);
    for (const OwnedTensor& owned : inference.buffers) {
      op.buffers.push_back(add_tensor({.name = spec.name + "." + owned.suffix,
                                       .shape = {.dims = owned.dims, .batched = false},
                                       .role = Role::buffer,
                                       .initializer = owned.initializer}));
      graph_.buffers_.push_back(op.buffers.back());
    }
    for (std::size_t i = 0; i < inference.outputs.size(); ++i) {
      op.outputs.push_back(add_tensor({.name = spec.name + "." + schema.output_names[i],
                                       .shape = inference.outputs[i],
                                       .role = Role::activation,
                                       .producer = id}));
    }
    if (schema.is_loss) graph_.loss_ = id;
    add_operator(std::move(op));
    return graph_.operators_.back().outputs.front();
  } catch (const InvalidInput& error) {
    throw InvalidInput(fmt::format("operator '{}' ({}): {}", spec.name, kind, error.what()));
  }
}

TensorId GraphBuilder::add_cost(std::string name, std::vector<TensorId> inputs, const OpFigures& figures,
                                std::string layer) {
  check_name("operator", name);
  for (const double seconds : {figures.forward_s, figures.backward_input_s, figures.backward_weight_s}) {
    if (!(seconds >= 0) || std::isinf(seconds)) {
      throw InvalidInput(fmt::format("operator '{}' (cost): found a time of {} s, allowed: 0 or more", name, seconds));
    }
  }
  for (const std::int64_t bytes : {figures.parameter_bytes, figures.output_bytes, figures.saved_bytes}) {
    if (bytes < 0) {
      throw InvalidInput(fmt::format("operator '{}' (cost): found {} bytes, allowed: 0 or more", name, bytes));
    }
  }
  try {
    for (std::size_t i = 0; i < inputs.size(); ++i) operand(inputs[i], i);
  } catch (const InvalidInput& error) {
    throw InvalidInput(fmt::format("operator '{}' (cost): {}", name, error.what()));
  }
  const auto id = static_cast<OpId>(graph_.operators_.size());
  static const OpSchema& schema = op_schema("cost");
  Operator op{.name = name, .schema = &schema};
  op.inputs = std::move(inputs);
  op.layer = std::move(layer);
  if (figures.parameter_bytes > 0) {
    const TensorShape shape{.dims = {figures.parameter_bytes}, .element = ElementType::byte, .batched = false};
    op.parameters.push_back(add_tensor({.name = name + ".weight", .shape = shape, .role = Role::parameter}));
    graph_.parameters_.push_back(op.parameters.back());
  }
  const TensorShape shape{.dims = {figures.output_bytes}, .element = ElementType::byte, .batched = true};
  op.outputs.push_back(
      add_tensor({.name = name + ".output", .shape = shape, .role = Role::activation, .producer = id}));
  if (!add_operator(std::move(op))) {
    throw InvalidInput(fmt::format("operator '{}' (cost): the name is used twice; names must differ", name));
  }
  if (graph_.figures_.empty()) graph_.figures_.reserve(graph_.operators_.capacity());
  graph_.figures_.resize(static_cast<std::size_t>(id) + 1);
  graph_.figures_.back() = figures;
  return graph_.operators_.back().outputs.front();
}

void GraphBuilder::carry(Carried carried) { graph_.carried_ = std::make_shared<const Carried>(std::move(carried)); }

TensorId GraphBuilder::find_tensor(std::string_view name) const { return graph_.find_tensor(name); }

const TensorShape& GraphBuilder::shape(TensorId id) const { return graph_.tensor(id).shape; }

void GraphBuilder::initialize(TensorId parameter, Initializer initializer) {
  graph_.tensors_.at(static_cast<std::size_t>(parameter)).initializer = initializer;
}

// Compressed rows: count the readers of each tensor, sum up, then fill in operator order.
void GraphBuilder::index_consumers() {
  std::vector<OpId> last_reader(graph_.tensors_.size(), -1);
  std::vector<std::int64_t>& start = graph_.consumer_start_;
  start.assign(graph_.tensors_.size() + 1, 0);
  const auto each_reader = [&](auto&& visit) {
    std::fill(last_reader.begin(), last_reader.end(), -1);
    for (OpId id = 0; id < graph_.size(); ++id) {
      const Operator& op = graph_.op(id);
      for (const auto* operands : {&op.inputs, &op.parameters, &op.buffers}) {
        for (const TensorId operand : *operands) {
          const auto tensor = static_cast<std::size_t>(operand);
          if (last_reader[tensor] != id) visit(tensor, id);
          last_reader[tensor] = id;
        }
      }
    }
  };
  each_reader([&](std::size_t tensor, OpId) { ++start[tensor + 1]; });
  for (std::size_t t = 1; t < start.size(); ++t) start[t] += start[t - 1];
  graph_.consumers_.resize(static_cast<std::size_t>(start.back()));
  std::vector<std::int64_t> next(start.begin(), start.end() - 1);
  each_reader([&](std::size_t tensor, OpId id) { graph_.consumers_[static_cast<std::size_t>(next[tensor]++)] = id; });
}

Graph GraphBuilder::build() {
  if (graph_.operators_.empty()) throw InvalidInput(fmt::format("graph '{}' has no operators", graph_.name_));
  if (!graph_.figures_.empty()) graph_.figures_.resize(graph_.operators_.size());
  index_consumers();
  graph_.digest_ = graph_.make_digest();
  Graph done = std::move(graph_);
  graph_ = Graph();
  return done;
}

}  // namespace millrace
