// Cuts, joins and converts parts element by element.
#include "tests/shard/parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace millrace::shard::testing {
namespace {

std::size_t index(int at) { return static_cast<std::size_t>(at); }

/// f(position in `outer`, position in `inner`) for each element of `inner`, which lies in `outer`.
template <class F>
void each(const Box& outer, const Box& inner, F f) {
  const std::int64_t count = volume(inner);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, at = 0, stride = 1;
    for (std::size_t dim = inner.size(); dim-- > 0;) {
      const std::int64_t where = inner[dim].begin + rest % inner[dim].size();
      rest /= inner[dim].size();
      if (where < outer[dim].begin || where >= outer[dim].end) throw std::logic_error("a part lies outside its whole");
      at += (where - outer[dim].begin) * stride;
      stride *= outer[dim].size();
    }
    f(static_cast<std::size_t>(at), static_cast<std::size_t>(i));
  }
}

bool first_of_terms(const Placement& placement, const Mesh& mesh, int device) {
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    if (placement[index(axis)].is_partial() && mesh.coordinate(device, axis) != 0) return false;
  }
  return true;
}

unsigned partial_mask(const Placement& placement, const Mesh& mesh) {
  unsigned mask = 0;
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    if (placement[index(axis)].is_partial()) mask |= 1U << axis;
  }
  return mask;
}

}  // namespace

Numbers take(const Numbers& numbers, const Box& whole, const Box& part) {
  Numbers taken(static_cast<std::size_t>(volume(part)));
  each(whole, part, [&](std::size_t at, std::size_t i) { taken[i] = numbers[at]; });
  return taken;
}

void add_to(Numbers& numbers, const Box& whole, const Numbers& part_numbers, const Box& part) {
  each(whole, part, [&](std::size_t at, std::size_t i) { numbers[at] += part_numbers[i]; });
}

Box whole_box(const TensorView& view) {
  Box box;
  for (const std::int64_t extent : view.extents) box.push_back({0, extent});
  return box;
}

Parts cut(const Numbers& whole, const TensorView& view, const Placement& placement, const Mesh& mesh) {
  Parts parts;
  const auto terms = static_cast<int>(mesh.group(0, partial_mask(placement, mesh)).size());
  for (int device = 0; device < mesh.size(); ++device) {
    parts.push_back(take(whole, whole_box(view), box_of(view, placement, mesh, device)));
    if (terms == 1) continue;
    // The first keeps what the others take away from it.
    for (std::size_t i = 0; i < parts.back().size(); ++i) {
      const double taken = 0.25 * std::sin(static_cast<double>(i) + 1.0);
      double& number = parts.back()[i];
      number = first_of_terms(placement, mesh, device) ? number - taken * (terms - 1) : taken;
    }
  }
  return parts;
}

Numbers join(const Parts& parts, const TensorView& view, const Placement& placement, const Mesh& mesh) {
  const Box all = whole_box(view);
  Numbers whole(static_cast<std::size_t>(volume(all)), std::numeric_limits<double>::quiet_NaN());
  const unsigned terms = partial_mask(placement, mesh);
  for (int device = 0; device < mesh.size(); ++device) {
    if (!first_of_terms(placement, mesh, device)) continue;
    Numbers sum(parts[index(device)].size());
    for (const int other : mesh.group(device, terms)) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += parts[index(other)][i];
    }
    each(all, box_of(view, placement, mesh, device), [&](std::size_t at, std::size_t i) {
      if (!std::isnan(whole[at]) && std::abs(whole[at] - sum[i]) > 1e-9) {
        throw std::logic_error("devices hold different copies of a value");
      }
      whole[at] = sum[i];
    });
  }
  return whole;
}

Parts convert(const Parts& parts, const TensorView& view, const Step& step, const Mesh& mesh) {
  const bool sums = step.kind == StepKind::all_reduce || step.kind == StepKind::reduce_scatter;
  Parts result;
  for (int device = 0; device < mesh.size(); ++device) {
    const Box wanted = box_of(view, step.to, mesh, device);
    Numbers numbers(static_cast<std::size_t>(volume(wanted)), std::numeric_limits<double>::quiet_NaN());
    if (step.kind == StepKind::as_term) {
      const Box own = box_of(view, step.from, mesh, device);
      std::fill(numbers.begin(), numbers.end(), 0.0);
      bool first = own != wanted;  // a part of its own; else the first of the group has it all
      for (int axis = 0; axis < mesh.axis_count(); ++axis) {
        if ((step.axes >> axis & 1U) != 0) first = first || mesh.coordinate(device, axis) == 0;
      }
      if (first) add_to(numbers, wanted, parts[index(device)], own);
      result.push_back(std::move(numbers));
      continue;
    }
    std::vector<int> group = mesh.group(device, step.axes);
    if (step.local()) group = {device};
    if (sums) std::fill(numbers.begin(), numbers.end(), 0.0);
    for (const int other : group) {
      const Box theirs = box_of(view, step.from, mesh, other);
      const Box both = intersection(wanted, theirs);
      if (volume(both) == 0) continue;
      const Numbers shared = take(parts[index(other)], theirs, both);
      each(wanted, both,
           [&](std::size_t at, std::size_t i) { numbers[at] = sums ? numbers[at] + shared[i] : shared[i]; });
    }
    for (const double number : numbers) {
      if (std::isnan(number)) throw std::logic_error("the group of a step does not hold what it needs");
    }
    result.push_back(std::move(numbers));
  }
  return result;
}

}  // namespace millrace::shard::testing
