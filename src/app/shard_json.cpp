// JSON and Graphviz of a sharded graph.
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/shard_documents.h"
#include "base/text.h"
#include "shard/local_operator.h"

namespace millrace::app {
namespace {

using nlohmann::json;
using shard::Instruction;
using shard::Sharded;
using shard::Side;

std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }

json cost_json(const shard::StepCost& cost) { return {{"bytes", cost.moved.value()}, {"time_s", cost.time.value()}}; }

const std::string& op_name(const Sharded& sharded, OpId op) {
  static const std::string start = "start";
  return op < 0 || op >= sharded.graph->size() ? start : sharded.graph->op(op).name;
}

const shard::Value& value_of(const Sharded& sharded, shard::ValueId id) { return sharded.cut.values[index(id)]; }

json attribute_json(const Attribute& attribute) {
  return std::visit([](const auto& value) { return json(value); }, attribute);
}

json box_json(const shard::Box& box) {
  json list = json::array();
  for (const shard::Interval& side : box) list.push_back({side.begin, side.end});
  return list;
}

void add_collectives(const Sharded& sharded, const std::vector<Instruction>& list, const char* pass, json& into) {
  for (const Instruction& one : list) {
    for (const shard::InnerReduction& inner : one.inner) {
      json row = cost_json(inner.cost);
      row.update({{"pass", pass},
                  {"kind", "inside"},
                  {"operator", op_name(sharded, one.op)},
                  {"axes", axes_text(*sharded.mesh, inner.axes)},
                  {"elements", inner.elements}});
      into.push_back(std::move(row));
    }
    if (one.kind != Instruction::Kind::convert) continue;
    const shard::Value& value = value_of(sharded, one.to);
    json row = cost_json(one.cost);
    row.update({{"pass", pass},
                {"kind", std::string(shard::name(one.step.kind))},
                {"behind", op_name(sharded, one.op)},
                {"tensor", sharded.graph->tensor(value.tensor).name},
                {"gradient", value.gradient},
                {"axes", axes_text(*sharded.mesh, one.step.axes)},
                {"from", shard::format(one.step.from, *sharded.mesh)},
                {"to", shard::format(one.step.to, *sharded.mesh)},
                {"per_iteration", one.per_iteration}});
    into.push_back(std::move(row));
  }
}

json instruction_json(const Sharded& sharded, const Instruction& one, int device) {
  json row{{"behind", op_name(sharded, one.op)}};
  switch (one.kind) {
    case Instruction::Kind::add:
      row = {{"do", "add"}, {"values", one.values}, {"to", one.to}};
      break;
    case Instruction::Kind::convert:
      row.update({{"do", std::string(shard::name(one.step.kind))}, {"from", one.from}, {"to", one.to}});
      if (!one.step.local()) row["group"] = sharded.mesh->group(device, one.step.axes);
      if (one.step.largest) row["reduction"] = "max";
      if (one.per_iteration) row["per_iteration"] = true;
      break;
    case Instruction::Kind::compute: {
      const Operator& op = sharded.graph->op(one.op);
      const shard::LocalOperator local =
          shard::local_operator(*sharded.graph, *sharded.ops, *sharded.tensors, *sharded.mesh, one.op,
                                sharded.cut.decision.uses[index(one.op)], device);
      json attributes = json::object();
      for (const auto& [name, attribute] : local.attributes.all()) attributes[name] = attribute_json(attribute);
      row = {{"do", "compute"},
             {"operator", op.name},
             {"kind", op.schema->name},
             {"attributes", attributes},
             {"values", one.values}};
      if (local.indices) row["indices"] = {local.indices->begin, local.indices->end};
      if (local.inner_axes != 0) row["reduces_over"] = sharded.mesh->group(device, local.inner_axes);
    }
  }
  return row;
}

}  // namespace

std::string axes_text(const shard::Mesh& mesh, unsigned axes) {
  std::vector<std::string> names;
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    if ((axes >> axis & 1U) != 0) names.push_back(mesh.axes()[index(axis)].name);
  }
  return join(names);
}

std::string origin_text(const Sharded& sharded, TensorId tensor, int axis) {
  const shard::Origin origin = sharded.cut.decision.origins[index(tensor)][index(axis)];
  switch (origin.kind) {
    case shard::Origin::Kind::standard:
      return "";
    case shard::Origin::Kind::annotated:
      return "annotated: " + shard::format(sharded.annotations[index(origin.source)]);
    case shard::Origin::Kind::propagated:
      return "from " + op_name(sharded, origin.source);
    case shard::Origin::Kind::chosen:
      return "chosen for " + op_name(sharded, origin.source);
  }
  return "";
}

json shard_document(const Sharded& sharded) {
  json mesh = json::array(), tensors = json::array(), collectives = json::array(), memory = json::array();
  for (const shard::Axis& axis : sharded.mesh->axes()) mesh.push_back({{"name", axis.name}, {"size", axis.size}});
  for (TensorId id = 0; id < static_cast<TensorId>(sharded.graph->tensors().size()); ++id) {
    json origins = json::array();
    for (int axis = 0; axis < sharded.mesh->axis_count(); ++axis) origins.push_back(origin_text(sharded, id, axis));
    const auto view = sharded.tensors->view(id);
    tensors.push_back({{"name", sharded.graph->tensor(id).name},
                       {"dims", std::vector<std::int64_t>(view.extents.begin(), view.extents.end())},
                       {"placement", shard::format(sharded.cut.decision.placements[index(id)], *sharded.mesh)},
                       {"origin", std::move(origins)}});
  }
  add_collectives(sharded, sharded.cut.forward, "forward", collectives);
  add_collectives(sharded, sharded.cut.backward, "backward", collectives);
  for (const Bytes bytes : sharded.memory) memory.push_back(bytes.value());
  return {{"mesh", std::move(mesh)},
          {"automatic", sharded.automatic},
          {"exact", sharded.exact},
          {"fits", sharded.fits},
          {"tensors", std::move(tensors)},
          {"collectives", std::move(collectives)},
          {"per_micro_batch", cost_json(sharded.cut.per_micro_batch())},
          {"per_iteration", cost_json(sharded.cut.once())},
          {"memory_bytes", std::move(memory)}};
}

json device_document(const Sharded& sharded, int device) {
  json coordinates = json::object(), values = json::array(), forward = json::array(), backward = json::array();
  for (int axis = 0; axis < sharded.mesh->axis_count(); ++axis) {
    coordinates[sharded.mesh->axes()[index(axis)].name] = sharded.mesh->coordinate(device, axis);
  }
  for (const shard::Value& value : sharded.cut.values) {
    const auto view = sharded.tensors->view(value.tensor);
    values.push_back({{"tensor", sharded.graph->tensor(value.tensor).name},
                      {"gradient", value.gradient},
                      {"placement", shard::format(value.placement, *sharded.mesh)},
                      {"box", box_json(shard::box_of(view, value.placement, *sharded.mesh, device))}});
  }
  for (const Instruction& one : sharded.cut.forward) forward.push_back(instruction_json(sharded, one, device));
  for (const Instruction& one : sharded.cut.backward) backward.push_back(instruction_json(sharded, one, device));
  return {{"graph", sharded.graph->name()},        {"device", device},
          {"coordinates", std::move(coordinates)}, {"values", std::move(values)},
          {"forward", std::move(forward)},         {"backward", std::move(backward)}};
}

std::string graphviz(const Sharded& sharded) {
  std::string text = "digraph sharded {\n  rankdir=TB;\n  node [shape=box];\n";
  std::map<shard::ValueId, std::string> maker;
  int number = 0;
  const auto edge = [&](shard::ValueId value, const std::string& to) {
    const shard::Value& one = value_of(sharded, value);
    const std::string& name = sharded.graph->tensor(one.tensor).name;
    if (maker.count(value) == 0) {
      maker[value] = fmt::format("v{}", value);
      text += fmt::format("  v{} [label=\"{}\", shape=plaintext];\n", value, name);
    }
    text += fmt::format("  {} -> {} [label=\"{}\"];\n", maker[value], to, shard::format(one.placement, *sharded.mesh));
  };
  for (const Instruction& one : sharded.cut.forward) {
    const std::string node = fmt::format("n{}", number++);
    if (one.kind == Instruction::Kind::convert) {
      text += fmt::format("  {} [label=\"{}\\n{}\", shape=ellipse];\n", node, shard::name(one.step.kind),
                          format(one.cost.moved));
      edge(one.from, node);
      maker[one.to] = node;
      continue;
    }
    const auto operands = sharded.ops->operands(one.op);
    text += fmt::format("  {} [label=\"{}\"];\n", node, op_name(sharded, one.op));
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].side == Side::output) {
        maker[one.values[i]] = node;
      } else {
        edge(one.values[i], node);
      }
    }
  }
  return text + "}\n";
}

}  // namespace millrace::app
