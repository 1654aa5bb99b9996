// Coordinates and groups of the mesh, and the text of properties.
#include "shard/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/errors.h"

namespace millrace::shard {

Mesh::Mesh(std::vector<Axis> axes) : axes_(std::move(axes)) {
  if (axes_.empty() || axes_.size() > static_cast<std::size_t>(kMaximumAxes)) {
    throw InvalidInput(fmt::format("mesh: found {} axes, allowed: 1 to {}", axes_.size(), kMaximumAxes));
  }
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].size < 1) {
      throw InvalidInput(
          fmt::format("mesh axis '{}': found {}, allowed: integer, at least 1", axes_[i].name, axes_[i].size));
    }
    if (find_axis(axes_[i].name) != static_cast<int>(i)) {
      throw InvalidInput(fmt::format("mesh: two axes are named '{}'", axes_[i].name));
    }
  }
  strides_.assign(axes_.size(), 1);
  for (std::size_t i = axes_.size(); i-- > 0;) {
    strides_[i] = size_;
    size_ *= axes_[i].size;
  }
}

int Mesh::find_axis(const std::string& name) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> Mesh::group(int device, unsigned mask) const {
  std::vector<int> members;
  for (int other = 0; other < size_; ++other) {
    bool belongs = true;
    for (int axis = 0; axis < axis_count(); ++axis) {
      belongs = belongs && ((mask >> axis & 1U) != 0 || coordinate(other, axis) == coordinate(device, axis));
    }
    if (belongs) members.push_back(other);
  }
  return members;
}

int Mesh::add_ratio(std::vector<double> weights) {
  for (std::size_t i = 0; i < ratios_.size(); ++i) {
    if (ratios_[i] == weights) return static_cast<int>(i);
  }
  ratios_.push_back(std::move(weights));
  return static_cast<int>(ratios_.size()) - 1;
}

std::string format(const Property& property, const Mesh& mesh) {
  switch (property.kind) {
    case Property::Kind::unset:
      return "-";
    case Property::Kind::replicated:
      return "B";
    case Property::Kind::partial_sum:
      return "P";
    case Property::Kind::partial_max:
      return "P(max)";
    case Property::Kind::split:
      break;
  }
  if (property.ratio == 0) return fmt::format("S{}", property.dim);
  return fmt::format("S{} {:.3g}", property.dim, fmt::join(mesh.ratio(property.ratio), ":"));
}

std::string format(const Placement& placement, const Mesh& mesh) {
  if (mesh.axis_count() == 1) return format(placement[0], mesh);
  std::string text = "(";
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    text += (axis == 0 ? "" : ", ") + format(placement[static_cast<std::size_t>(axis)], mesh);
  }
  return text + ")";
}

}  // namespace millrace::shard
