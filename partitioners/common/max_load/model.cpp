// Reads the file's figures and the machine into index form.
#include "partitioners/common/max_load/model.h"

#include <algorithm>
#include <limits>

#include "base/limits.h"
#include "plan/published/max_load.h"

namespace millrace::partitioners::max_load {
namespace {

void add_order(const Graph& graph, Model& model) {
  model.before.resize(static_cast<std::size_t>(graph.size()));
  model.after.resize(model.before.size());
  for (OpId op = 0; op < graph.size(); ++op) {
    auto& before = model.before[static_cast<std::size_t>(op)];
    for (const TensorId input : graph.op(op).inputs) {
      const OpId producer = graph.tensor(input).producer;
      if (producer >= 0) before.push_back(static_cast<Item>(producer));
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (const Item earlier : before) model.after[earlier].push_back(static_cast<Item>(op));
  }
}

void add_devices(const plan::Problem& problem, Model& model) {
  for (int device = 0; device < problem.cluster->size(); ++device) {
    const bool cpu = plan::is_cpu_core(problem, device);
    const double memory = plan::max_load_memory(problem, device);
    const auto kind = std::find_if(model.kinds.begin(), model.kinds.end(),
                                   [&](const DeviceKind& k) { return k.cpu == cpu && k.memory == memory; });
    if (kind == model.kinds.end()) {
      model.kinds.push_back({cpu, memory, {device}});
    } else {
      kind->devices.push_back(device);
    }
  }
}

}  // namespace

int Model::devices() const {
  std::size_t count = 0;
  for (const DeviceKind& kind : kinds) count += kind.devices.size();
  return static_cast<int>(count);
}

Model make_model(const plan::Problem& problem) {
  const SplitModel& file = plan::split_model(problem);
  Model model;
  for (std::size_t op = 0; op < file.ops.size(); ++op) {
    const SplitModel::Op& figures = file.ops[op];
    model.accelerator_s.push_back(figures.on_accelerator ? figures.accelerator_s : kNever);
    model.cpu_s.push_back(figures.cpu_s);
    model.bytes.push_back(figures.bytes);
    model.members.push_back({static_cast<OpId>(op)});
  }
  for (const SplitModel::Transfer& transfer : file.transfers) {
    if (!(transfer.seconds > 0)) continue;
    Transfer copy{static_cast<Item>(transfer.from), {}, transfer.seconds};
    for (const OpId reader : transfer.to) copy.to.push_back(static_cast<Item>(reader));
    model.transfers.push_back(std::move(copy));
  }
  add_order(*problem.graph, model);
  add_devices(problem, model);
  index_transfers(model);
  return model;
}

void index_transfers(Model& model) {
  model.touching.assign(model.size(), {});
  for (std::size_t t = 0; t < model.transfers.size(); ++t) {
    model.touching[model.transfers[t].from].push_back(t);
    for (const Item reader : model.transfers[t].to) model.touching[reader].push_back(t);
  }
}

double part_load(const Model& model, const Part& part) {
  const DeviceKind& kind = model.kinds[part.kind];
  double seconds = 0, bytes = 0;
  std::vector<bool> inside(model.size(), false);
  for (const Item item : part.items) {
    seconds += kind.cpu ? model.cpu_s[item] : model.accelerator_s[item];
    bytes += model.bytes[item];
    inside[item] = true;
  }
  if (bytes > kind.memory) return kNever;
  if (kind.cpu) return seconds;
  std::vector<std::size_t> touched;
  for (const Item item : part.items) {
    touched.insert(touched.end(), model.touching[item].begin(), model.touching[item].end());
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const std::size_t t : touched) {
    const Transfer& transfer = model.transfers[t];
    const bool all = inside[transfer.from] &&
                     std::all_of(transfer.to.begin(), transfer.to.end(), [&](Item reader) { return inside[reader]; });
    if (!all) seconds += transfer.seconds;
  }
  return seconds;
}

double max_load(const Model& model, const Parts& parts) {
  double most = 0;
  for (const Part& part : parts) most = std::max(most, part_load(model, part));
  return most;
}

Parts unfolded(const Model& model, const Parts& parts) {
  Parts result;
  for (const Part& part : parts) {
    Part wide{part.kind, {}};
    for (const Item item : part.items) {
      for (const OpId op : model.members[item]) wide.items.push_back(static_cast<Item>(op));
    }
    std::sort(wide.items.begin(), wide.items.end());
    if (!wide.items.empty()) result.push_back(std::move(wide));
  }
  return result;
}

}  // namespace millrace::partitioners::max_load
