// Largest remainders, and boxes as products of intervals.
#include "shard/intervals.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace millrace::shard {

std::int64_t volume(const Box& box) {
  std::int64_t product = 1;
  for (const Interval& side : box) product *= side.size();
  return product;
}

Box intersection(const Box& a, const Box& b) {
  Box both(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    both[i] = {std::max(a[i].begin, b[i].begin), std::min(a[i].end, b[i].end)};
  }
  return both;
}

std::vector<std::int64_t> cut_units(std::int64_t units, int parts, const std::vector<double>& weights) {
  const auto count = static_cast<std::size_t>(parts);
  const std::vector<double> wanted = weights.empty() ? std::vector<double>(count, 1.0) : weights;
  const double total = std::accumulate(wanted.begin(), wanted.end(), 0.0);
  std::vector<std::int64_t> sizes(count);
  std::vector<double> rest(count);
  std::int64_t left = units;
  for (std::size_t i = 0; i < count; ++i) {
    const double exact = static_cast<double>(units) * wanted[i] / total;
    sizes[i] = static_cast<std::int64_t>(std::floor(exact + 1e-9));
    rest[i] = exact - static_cast<double>(sizes[i]);
    left -= sizes[i];
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rest[a] > rest[b] + 1e-9; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % count, --left) ++sizes[order[i]];
  if (units >= parts) {
    for (std::size_t i = 0; i < count; ++i) {
      if (sizes[i] > 0) continue;
      --*std::max_element(sizes.begin(), sizes.end());
      sizes[i] = 1;
    }
  }
  std::vector<std::int64_t> borders{0};
  for (const std::int64_t size : sizes) borders.push_back(borders.back() + size);
  return borders;
}

std::int64_t TensorView::bytes() const {
  return std::accumulate(extents.begin(), extents.end(), element_bytes, std::multiplies<>());
}

Box box_of(const TensorView& tensor, const Placement& placement, const Mesh& mesh, int device) {
  Box box;
  for (const std::int64_t units : tensor.units) box.push_back({0, units});
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    const Property& property = placement[static_cast<std::size_t>(axis)];
    if (!property.is_split()) continue;
    Interval& side = box[static_cast<std::size_t>(property.dim)];
    const auto borders = cut_units(side.size(), mesh.axis_size(axis), mesh.ratio(property.ratio));
    const auto at = static_cast<std::size_t>(mesh.coordinate(device, axis));
    side = {side.begin + borders[at], side.begin + borders[at + 1]};
  }
  for (std::size_t i = 0; i < box.size(); ++i) {
    const std::int64_t unit = tensor.extents[i] / tensor.units[i];
    box[i] = {box[i].begin * unit, box[i].end * unit};
  }
  return box;
}

bool fits(const TensorView& tensor, const Placement& placement, const Mesh& mesh) {
  std::vector<std::int64_t> left(tensor.units.begin(), tensor.units.end());
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    const Property& property = placement[static_cast<std::size_t>(axis)];
    if (!property.is_split()) continue;
    const auto dim = static_cast<std::size_t>(property.dim);
    if (dim >= left.size() || left[dim] < mesh.axis_size(axis)) return false;
    // The smallest part is what the next axis has to cut.
    const auto borders = cut_units(left[dim], mesh.axis_size(axis), mesh.ratio(property.ratio));
    std::int64_t least = left[dim];
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) least = std::min(least, borders[i + 1] - borders[i]);
    if (least < 1) return false;
    left[dim] = least;
  }
  return true;
}

}  // namespace millrace::shard
