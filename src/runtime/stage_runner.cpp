// Row counts, slots and executables of a stage.
#include "runtime/stage_runner.h"

#include <algorithm>

#include "program/storage_order.h"

namespace millrace::runtime {
namespace {

int replica_of(const ProgramStage& stage, int rank) {
  return static_cast<int>(std::find(stage.ranks.begin(), stage.ranks.end(), rank) - stage.ranks.begin());
}

bool ends_micro_batch(const Program& program, InstructionKind kind) {
  if (!program.training) return kind == InstructionKind::forward;
  return kind == InstructionKind::backward || kind == InstructionKind::backward_weight;
}

}  // namespace

StageRunner::StageRunner(const Graph& graph, const Program& program, std::int32_t stage, kernels::Precision precision,
                         std::uint64_t seed, kernels::Storage storage)
    : stage_(stage),
      seed_(seed),
      graph_(make_stage_graph(graph, program.stages[static_cast<std::size_t>(stage)].ops)),
      parameters_(graph_, storage_order(program, stage), precision, storage) {
  parameters_.initialize(seed);
}

// Steps through the rank's program with a free list of slots for each row count.
std::vector<std::pair<StageRunner::Key, int>> StageRunner::assign(const Program& program, int rank) const {
  const ProgramStage& stage = program.stages[static_cast<std::size_t>(stage_)];
  const auto replica = static_cast<std::size_t>(replica_of(stage, rank));
  std::vector<std::pair<Key, int>> places(stage.rows.size(), {Key{}, -1});
  std::map<Key, std::vector<bool>> busy;
  for (const Instruction& instruction : program.ranks[static_cast<std::size_t>(rank)].instructions) {
    if (instruction.stage != stage_ || instruction.micro_batch < 0) continue;
    const auto micro_batch = static_cast<std::size_t>(instruction.micro_batch);
    const Key key{stage.rows[micro_batch][replica].size(), program.training};
    if (key.rows == 0) continue;
    std::vector<bool>& slots = busy[key];
    if (instruction.kind == InstructionKind::forward) {
      const auto free = std::find(slots.begin(), slots.end(), false);
      const auto slot = static_cast<std::size_t>(free - slots.begin());
      if (free == slots.end()) slots.push_back(false);
      slots[slot] = true;
      places[micro_batch] = {key, static_cast<int>(slot)};
    }
    if (ends_micro_batch(program, instruction.kind))
      slots[static_cast<std::size_t>(places[micro_batch].second)] = false;
  }
  return places;
}

void StageRunner::require(const Program& program, int rank) {
  const auto& instructions = program.ranks[static_cast<std::size_t>(rank)].instructions;
  const bool split = std::any_of(instructions.begin(), instructions.end(), [](const Instruction& instruction) {
    return instruction.kind == InstructionKind::backward_weight;
  });
  for (const auto& [key, slot] : assign(program, rank)) {
    if (slot < 0) continue;
    Need& need = needs_[key];
    need.slots = std::max(need.slots, slot + 1);
    need.split_backward = need.split_backward || split;
  }
}

void StageRunner::compile(kernels::Device& device) {
  device_ = &device;
  for (auto& [key, need] : needs_) {
    kernels::CompileOptions options;
    options.rows = key.rows;
    options.slots = need.slots;
    options.training = key.training;
    options.split_backward = need.split_backward;
    options.seed = seed_;
    need.executable = device.compile(graph_, parameters_, options);
  }
}

std::vector<BoundMicroBatch> StageRunner::bind(const Program& program, int rank) const {
  const ProgramStage& stage = program.stages[static_cast<std::size_t>(stage_)];
  const auto replica = static_cast<std::size_t>(replica_of(stage, rank));
  std::vector<BoundMicroBatch> bound;
  for (const auto& [key, slot] : assign(program, rank)) {
    BoundMicroBatch place;
    place.rows = stage.rows[bound.size()][replica];
    place.slot = slot;
    if (slot >= 0) place.executable = needs_.at(key).executable.get();
    bound.push_back(place);
  }
  return bound;
}

void StageRunner::updated(std::size_t first, std::size_t count) {
  const std::int64_t bytes = kernels::real_bytes(parameters_.precision());
  device_->updated(Bytes(parameters_.range_elements(first, count) * bytes));
}

std::int64_t StageRunner::activation_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [key, need] : needs_) {
    if (need.executable) bytes += need.executable->bytes().per_slot * need.executable->bytes().slots;
  }
  return bytes;
}

std::int64_t StageRunner::workspace_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [key, need] : needs_) {
    if (need.executable) bytes += need.executable->bytes().workspace;
  }
  return bytes;
}

}  // namespace millrace::runtime
