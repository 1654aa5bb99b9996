// The device mesh: devices of a cluster in a grid of one or more named axes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shard/property.h"

namespace millrace::shard {

struct Axis {
  std::string name;
  int size = 1;
};

/// Devices in row-major order of the axes: the last axis runs fastest.
class Mesh {
 public:
  /// Places on devices 0, 1, … of the cluster.
  /// \throws InvalidInput  no axis, more than kMaximumAxes, two of one name, a size below 1.
  explicit Mesh(std::vector<Axis> axes);

  const std::vector<Axis>& axes() const { return axes_; }
  int axis_count() const { return static_cast<int>(axes_.size()); }
  int axis_size(int axis) const { return axes_[static_cast<std::size_t>(axis)].size; }
  /// -1 when there is none of that name.
  int find_axis(const std::string& name) const;
  int size() const { return size_; }
  /// Where `device` stands along `axis`.
  int coordinate(int device, int axis) const {
    return device / strides_[static_cast<std::size_t>(axis)] % axis_size(axis);
  }
  /// The devices that differ from `device` at most in the axes of `mask`, in order.
  std::vector<int> group(int device, unsigned mask) const;

  /// Adds weights of the parts of uneven splits, one for each place of an axis, and returns their number.
  int add_ratio(std::vector<double> weights);
  /// Empty for number 0: equal parts.
  const std::vector<double>& ratio(int number) const { return ratios_[static_cast<std::size_t>(number)]; }

 private:
  std::vector<Axis> axes_;
  std::vector<int> strides_;
  int size_ = 1;
  std::vector<std::vector<double>> ratios_{{}};
};

/// "B", "S0", "S1 3:1", "P"; for a placement "(S0, B)".
std::string format(const Property& property, const Mesh& mesh);
std::string format(const Placement& placement, const Mesh& mesh);

}  // namespace millrace::shard
