// A transfer costs an accelerator that has some of its ends, but not all.
#include "partitioners/common/max_load/assignment.h"

#include <algorithm>
#include <utility>

namespace millrace::partitioners::max_load {
namespace {

constexpr std::size_t kMostCounts = 8'000'000;  // 32 MB

}  // namespace

Assignment::Assignment(const Model& model, std::vector<std::uint32_t> device_of)
    : model_(&model), device_of_(std::move(device_of)) {
  for (const DeviceKind& kind : model.kinds) {
    devices_.insert(devices_.end(), kind.devices.size(), Device{kind.cpu, kind.memory, 0, 0});
  }
  recount();
}

bool Assignment::too_large(const Model& model) {
  return model.transfers.size() * static_cast<std::size_t>(model.devices()) > kMostCounts;
}

double Assignment::max_load() const {
  double most = 0;
  for (const Device& device : devices_) most = std::max(most, device.load);
  return most;
}

bool Assignment::fits(Item item, std::uint32_t device) const {
  const Device& on = devices_[device];
  return on.bytes + model_->bytes[item] <= on.memory && (on.cpu || model_->on_accelerator(item));
}

Assignment::Loads Assignment::after_move(Item item, std::uint32_t to) const {
  const std::uint32_t from = device_of_[item];
  const Device &left = devices_[from], &joined = devices_[to];
  Loads loads{left.load - compute(item, left), joined.load + compute(item, joined)};
  for (const std::size_t t : model_->touching[item]) {
    const Transfer& transfer = model_->transfers[t];
    const auto all = static_cast<std::uint32_t>(transfer.to.size() + 1);
    const std::uint32_t here = ends(t, from), there = ends(t, to);
    if (!left.cpu) {
      // It was whole there, and is split; or the item was its last end there.
      if (here == all) loads.from += transfer.seconds;
      if (here == 1) loads.from -= transfer.seconds;
    }
    if (!joined.cpu) {
      if (there == 0) loads.to += transfer.seconds;
      if (there + 1 == all) loads.to -= transfer.seconds;
    }
  }
  return loads;
}

void Assignment::move(Item item, std::uint32_t to, const Loads& loads) {
  Device &left = devices_[device_of_[item]], &joined = devices_[to];
  left.load = loads.from;
  joined.load = loads.to;
  left.bytes -= model_->bytes[item];
  joined.bytes += model_->bytes[item];
  for (const std::size_t t : model_->touching[item]) {
    --ends(t, device_of_[item]);
    ++ends(t, to);
  }
  device_of_[item] = to;
}

void Assignment::recount() {
  ends_.assign(model_->transfers.size() * devices_.size(), 0);
  for (Device& device : devices_) device.load = device.bytes = 0;
  for (Item item = 0; item < device_of_.size(); ++item) {
    Device& device = devices_[device_of_[item]];
    device.load += compute(item, device);
    device.bytes += model_->bytes[item];
  }
  for (std::size_t t = 0; t < model_->transfers.size(); ++t) {
    const Transfer& transfer = model_->transfers[t];
    ++ends(t, device_of_[transfer.from]);
    for (const Item reader : transfer.to) ++ends(t, device_of_[reader]);
    for (std::uint32_t d = 0; d < devices(); ++d) {
      const bool split = ends(t, d) > 0 && ends(t, d) <= transfer.to.size();
      if (split && !devices_[d].cpu) devices_[d].load += transfer.seconds;
    }
  }
}

}  // namespace millrace::partitioners::max_load
