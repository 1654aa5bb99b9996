// Items on devices in any way, with the load of each device kept while items move one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

/// Devices are numbered kind by kind, in the order of their kinds.
class Assignment {
 public:
  Assignment(const Model& model, std::vector<std::uint32_t> device_of);

  /// Whether the counts of transfer ends by device would be too large to keep.
  static bool too_large(const Model& model);

  std::uint32_t devices() const { return static_cast<std::uint32_t>(devices_.size()); }
  std::uint32_t device_of(Item item) const { return device_of_[item]; }
  const std::vector<std::uint32_t>& all() const { return device_of_; }
  double load(std::uint32_t device) const { return devices_[device].load; }
  double max_load() const;

  /// Whether the device takes the item: its memory, and what it can compute.
  bool fits(Item item, std::uint32_t device) const;
  /// Loads of both devices after a move of `item` from its own device to another.
  struct Loads {
    double from = 0;
    double to = 0;
  };
  Loads after_move(Item item, std::uint32_t to) const;
  /// \pre loads = after_move(item, to)
  void move(Item item, std::uint32_t to, const Loads& loads);
  /// Adds everything up again: moves add rounding.
  void recount();

 private:
  struct Device {
    bool cpu = false;
    double memory = 0;
    double load = 0;
    double bytes = 0;
  };

  double compute(Item item, const Device& device) const {
    return device.cpu ? model_->cpu_s[item] : model_->accelerator_s[item];
  }
  std::uint32_t& ends(std::size_t transfer, std::uint32_t device) { return ends_[transfer * devices_.size() + device]; }
  std::uint32_t ends(std::size_t transfer, std::uint32_t device) const {
    return ends_[transfer * devices_.size() + device];
  }

  const Model* model_;
  std::vector<Device> devices_;
  std::vector<std::uint32_t> device_of_;
  std::vector<std::uint32_t> ends_;  // of each transfer on each device
};

}  // namespace millrace::partitioners::max_load
