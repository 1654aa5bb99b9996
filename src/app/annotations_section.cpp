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
