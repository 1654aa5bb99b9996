// The objective max_load: what the devices of a plan have to do for one sample, the formulas of dnn-partitioning.
#include "plan/published/max_load.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/limits.h"
#include "base/text.h"
#include "plan/published.h"

namespace millrace::plan {
namespace {

struct DeviceLoad {
  double accelerator_s = 0;
  double cpu_s = 0;
  double transfer_s = 0;
  double bytes = 0;
  std::vector<OpId> refused;  // operators that no accelerator supports
};

// The device of each operator, in the first pipeline; replicas are looked at no further.
std::vector<int> device_of(const Pipeline& pipeline, std::size_t ops) {
  std::vector<int> device(ops, 0);
  for (const Stage& stage : pipeline.stages) {
    for (const OpId op : stage.ops) device[static_cast<std::size_t>(op)] = stage.devices.front();
  }
  return device;
}

// Each device that holds the producer or reads it pays once, unless all is on one device.
void add_transfers(const SplitModel& model, const std::vector<int>& device, std::vector<DeviceLoad>& loads) {
  std::vector<int> readers;
  for (const SplitModel::Transfer& transfer : model.transfers) {
    const int producer = device[static_cast<std::size_t>(transfer.from)];
    readers.clear();
    for (const OpId reader : transfer.to) readers.push_back(device[static_cast<std::size_t>(reader)]);
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    if (readers.size() == 1 && readers.front() == producer) continue;
    loads[static_cast<std::size_t>(producer)].transfer_s += transfer.seconds;
    for (const int reader : readers) {
      if (reader != producer) loads[static_cast<std::size_t>(reader)].transfer_s += transfer.seconds;
    }
  }
}

std::vector<DeviceLoad> device_loads(const SplitModel& model, const std::vector<int>& device, int devices) {
  std::vector<DeviceLoad> loads(static_cast<std::size_t>(devices));
  for (std::size_t op = 0; op < model.ops.size(); ++op) {
    const SplitModel::Op& figures = model.ops[op];
    DeviceLoad& load = loads[static_cast<std::size_t>(device[op])];
    load.accelerator_s += figures.accelerator_s;
    load.cpu_s += figures.cpu_s;
    load.bytes += figures.bytes;
    if (!figures.on_accelerator) load.refused.push_back(static_cast<OpId>(op));
  }
  add_transfers(model, device, loads);
  return loads;
}

// The rules that a plan's form can break, before any load is looked at.
std::string broken_form(const Plan& plan) {
  if (plan.pipelines.size() > 1) {
    return fmt::format("{} pipelines; max_load places the graph once", plan.pipelines.size());
  }
  const auto& stages = plan.pipelines.front().stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].devices.size() == 1) continue;
    return fmt::format("stage {} is on {} devices; max_load places it on one", s, stages[s].devices.size());
  }
  return "";
}

std::string broken_rule(const DeviceLoad& load, int device, const Problem& problem) {
  if (is_cpu_core(problem, device)) return "";
  if (!load.refused.empty()) {
    return fmt::format("device {} is an accelerator and holds {}, which only a CPU core can compute", device,
                       problem.graph->op(load.refused.front()).name);
  }
  const double memory = max_load_memory(problem, device);
  if (load.bytes <= memory) return "";
  return fmt::format("device {} holds {} ({:.0f} bytes) and has {}", device, format(Bytes(std::llround(load.bytes))),
                     load.bytes, format(Bytes(std::llround(memory))));
}

int first_stage_on(const Pipeline& pipeline, int device) {
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    if (pipeline.stages[s].devices.front() == device) return static_cast<int>(s);
  }
  return 0;
}

}  // namespace

const SplitModel& split_model(const Problem& problem) {
  const Carried* carried = problem.graph->carried();
  const auto* model = carried == nullptr ? nullptr : std::get_if<SplitModel>(&carried->extra);
  if (model != nullptr) return *model;
  throw InvalidInput(
      fmt::format("objective max_load: graph '{}' says nothing of accelerators, CPU cores and host transfers; only "
                  "dnn-partitioning JSON files do (model.file: NAME.json)",
                  problem.graph->name()));
}

bool is_cpu_core(const Problem& problem, int device) { return problem.cluster->device(device).name == "cpu"; }

double max_load_memory(const Problem& problem, int device) {
  if (is_cpu_core(problem, device)) return kNever;
  const auto limit = problem.memory_of(device);
  return limit ? static_cast<double>(limit->value()) : kNever;
}

Judgement judge_max_load(const Plan& plan, const Problem& problem) {
  const SplitModel& model = split_model(problem);
  const Pipeline& pipeline = plan.pipelines.front();
  const std::vector<DeviceLoad> loads =
      device_loads(model, device_of(pipeline, model.ops.size()), problem.cluster->size());
  Judgement judgement;
  judgement.why_not = broken_form(plan);
  int fullest = pipeline.stages.front().devices.front();
  for (int device = 0; device < problem.cluster->size(); ++device) {
    const DeviceLoad& load = loads[static_cast<std::size_t>(device)];
    const bool cpu = is_cpu_core(problem, device);
    const double seconds = cpu ? load.cpu_s : load.accelerator_s + load.transfer_s;
    if (seconds > judgement.value) {
      judgement.value = seconds;
      fullest = device;
    }
    if (!cpu) judgement.memory_bytes = std::max(judgement.memory_bytes, load.bytes);
    if (judgement.why_not.empty()) judgement.why_not = broken_rule(load, device, problem);
  }
  judgement.bottleneck = judgement.value;
  judgement.limiting_stage = first_stage_on(pipeline, fullest);
  return judgement;
}

double bound_max_load(const Problem& problem) {
  const SplitModel& model = split_model(problem);
  int cores = 0;
  for (int device = 0; device < problem.cluster->size(); ++device) cores += is_cpu_core(problem, device) ? 1 : 0;
  const int accelerators = problem.cluster->size() - cores;

  // Operators in the order in which a core saves the accelerators most for its own time; a part of one may move.
  double on_accelerators = 0, on_cores = 0, largest = 0;
  std::vector<SplitModel::Op> movable;
  for (const SplitModel::Op& op : model.ops) {
    const bool accelerator = op.on_accelerator && accelerators > 0;
    if (accelerator && cores > 0) {
      if (op.accelerator_s > 0) movable.push_back(op);
      largest = std::max(largest, std::min(op.accelerator_s, op.cpu_s));
    } else {
      largest = std::max(largest, accelerator ? op.accelerator_s : op.cpu_s);
    }
    (accelerator ? on_accelerators : on_cores) += accelerator ? op.accelerator_s : op.cpu_s;
  }
  std::sort(movable.begin(), movable.end(), [](const SplitModel::Op& a, const SplitModel::Op& b) {
    return a.accelerator_s * b.cpu_s > b.accelerator_s * a.cpu_s;
  });
  const double k = accelerators, l = cores;
  for (const SplitModel::Op& op : movable) {
    if (on_accelerators * l <= on_cores * k) break;
    // With the part x moved, both kinds are equally full: (A − x a) / k = (C + x c) / l.
    const double weight = op.accelerator_s * l + op.cpu_s * k;
    const double part = weight > 0 ? std::min(1.0, (on_accelerators * l - on_cores * k) / weight) : 1.0;
    on_accelerators -= part * op.accelerator_s;
    on_cores += part * op.cpu_s;
  }
  const double work = std::max(k > 0 ? on_accelerators / k : 0, l > 0 ? on_cores / l : 0);
  return std::max(work, largest);
}

}  // namespace millrace::plan
