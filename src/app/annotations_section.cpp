// `plan.annotations` and `plan.mesh`: sharding properties by pattern, and the axes that they speak of (METHODS 7).
#include <fmt/format.h>

#include "app/sections.h"

namespace millrace::app {
namespace {

void read_property(config::Reader& reader, const config::Field& field, shard::Annotation& annotation) {
  const config::Field split = reader.field("split");
  const config::Field replicate = reader.field("replicate");
  const config::Field partial = reader.field("partial");
  if (static_cast<int>(split.given()) + static_cast<int>(replicate.given()) + static_cast<int>(partial.given()) != 1) {
    field.refuse("needs exactly one of split, replicate, partial");
  }
  if (split) annotation.dim = static_cast<int>(split.as(config::Integer{0, 1 << 10}));
  if (replicate) {
    annotation.kind = shard::Property::Kind::replicated;
    if (!replicate.as(config::Boolean{})) replicate.refuse("found false, allowed: true; leave the annotation out");
  }
  if (partial) {
    annotation.kind = partial.as(config::OneOf{{"sum", "max"}}) == "max" ? shard::Property::Kind::partial_max
                                                                         : shard::Property::Kind::partial_sum;
  }
  const config::Field ratios = reader.field("ratios");
  if (!ratios) return;
  for (const std::int64_t weight : ratios.as(config::IntegerList{1})) {
    annotation.weights.push_back(static_cast<double>(weight));
  }
  if (!split) ratios.refuse("is of split alone");
}

}  // namespace

std::vector<shard::Annotation> read_annotations(const config::Field& field) {
  std::vector<shard::Annotation> annotations;
  if (!field) return annotations;
  for (const config::Field& item : field.items()) {
    config::Reader reader(item);
    shard::Annotation annotation;
    const config::Field tensor = reader.field("tensor");
    const config::Field op = reader.field("op");
    if (tensor.given() == op.given()) item.refuse("needs exactly one of tensor, op: a name, or a pattern with *");
    if (tensor) annotation.tensor = tensor.as(config::Text{});
    if (op) annotation.op = op.as(config::Text{});
    annotation.axis = reader.get("axis", config::Text{}, "");
    read_property(reader, item, annotation);
    const std::string place = config::to_text(item.where());
    annotation.where = place + (place.empty() ? "" : ": ") + item.path();
    annotations.push_back(std::move(annotation));
  }
  return annotations;
}

config::Node write_annotations(const std::vector<shard::Annotation>& annotations) {
  using config::Node;
  Node list = Node::sequence();
  for (const shard::Annotation& one : annotations) {
    Node node = Node::map();
    node.add(one.op.empty() ? "tensor" : "op", Node::quote(one.op.empty() ? one.tensor : one.op));
    if (!one.axis.empty()) node.add("axis", Node::quote(one.axis));
    switch (one.kind) {
      case shard::Property::Kind::split:
        node.add("split", Node::plain(std::to_string(one.dim)));
        break;
      case shard::Property::Kind::replicated:
        node.add("replicate", Node::plain("true"));
        break;
      default:
        node.add("partial", Node::quote(one.kind == shard::Property::Kind::partial_max ? "max" : "sum"));
    }
    if (!one.weights.empty()) {
      Node weights = Node::sequence();
      for (const double weight : one.weights) weights.items.push_back(Node::plain(fmt::format("{:.0f}", weight)));
      node.add("ratios", std::move(weights));
    }
    list.items.push_back(std::move(node));
  }
  return list;
}

config::Node write_mesh(const std::vector<shard::Axis>& axes) {
  config::Node node = config::Node::map();
  for (const shard::Axis& axis : axes) node.add(axis.name, config::Node::plain(std::to_string(axis.size)));
  return node;
}

std::vector<shard::Axis> read_mesh(const config::Field& field) {
  std::vector<shard::Axis> axes;
  if (!field) return axes;
  config::Reader reader(field);
  for (const auto& [name, size] : reader.entries()) {
    axes.push_back({name, static_cast<int>(size.as(config::Integer{1, 1 << 20}))});
  }
  if (axes.empty() && field.is_map()) field.refuse("needs at least one axis, such as {tensor: 4}");
  return axes;
}

}  // namespace millrace::app
