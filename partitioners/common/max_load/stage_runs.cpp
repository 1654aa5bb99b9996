// Kahn's algorithm with one queue for each device.
#include "partitioners/common/max_load/stage_runs.h"

#include <algorithm>

namespace millrace::partitioners::max_load {

std::vector<DeviceStage> stage_runs(const Model& model, const std::vector<std::uint32_t>& device_of) {
  std::vector<int> number;  // of the cluster
  for (const DeviceKind& kind : model.kinds) number.insert(number.end(), kind.devices.begin(), kind.devices.end());
  std::vector<std::vector<Item>> ready(number.size());
  std::vector<std::size_t> missing(model.size());
  for (Item item = 0; item < model.size(); ++item) {
    missing[item] = model.before[item].size();
    if (missing[item] == 0) ready[device_of[item]].push_back(item);
  }
  std::vector<DeviceStage> stages;
  for (std::size_t placed = 0; placed < model.size();) {
    const auto most =
        std::max_element(ready.begin(), ready.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    DeviceStage stage{number[static_cast<std::size_t>(most - ready.begin())], {}};
    while (!most->empty()) {
      const Item item = most->back();
      most->pop_back();
      stage.ops.push_back(static_cast<OpId>(item));
      for (const Item after : model.after[item]) {
        if (--missing[after] == 0) ready[device_of[after]].push_back(after);
      }
    }
    placed += stage.ops.size();
    std::sort(stage.ops.begin(), stage.ops.end());
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace millrace::partitioners::max_load
