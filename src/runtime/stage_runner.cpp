// Row counts, slots and executables of a stage.
#include "runtime/stage_runner.h"

#include <algorithm>
#include <cstring>

#include "base/errors.h"
#include "program/recycled_gradients.h"
#include "program/storage_order.h"
#include "program/unroll.h"
#include "program/weight_segments.h"
#include "runtime/emulated_part.h"
#include "runtime/part_conversion.h"
#include "runtime/part_executable.h"
#include "runtime/weight_versions.h"

namespace millrace::runtime {
namespace {

std::size_t replica_of(const ProgramStage& stage, int rank) {
  const auto place = std::find(stage.ranks.begin(), stage.ranks.end(), rank);
  return stage.replica_of(static_cast<std::size_t>(place - stage.ranks.begin()));
}

std::vector<TensorId> numbered(const std::vector<TensorId>& order, const StageParts* parts) {
  std::vector<TensorId> result = order;
  if (parts == nullptr) return result;
  for (TensorId& tensor : result) tensor = parts->part_of.at(tensor);
  return result;
}

}  // namespace

StageRunner::StageRunner(const Graph& graph, const Program& program, std::int32_t stage, kernels::Precision precision,
                         std::uint64_t seed, kernels::Storage storage, std::unique_ptr<PartGroup> group,
                         const kernels::Allocator& of_gradients)
    : stage_(stage),
      seed_(seed),
      graph_(make_stage_graph(graph, program.stages[static_cast<std::size_t>(stage)].ops)),
      group_(std::move(group)),
      order_(storage_order(program, stage, group_ ? group_->index() : 0)),
      parts_(group_ ? program.stages[static_cast<std::size_t>(stage)].parts : nullptr),
      computed_(parts_ ? &parts_->devices[static_cast<std::size_t>(group_->index())].stage : &graph_),
      parameters_(*computed_, numbered(order_, parts_.get()), precision, storage,
                  parts_ ? std::nullopt : std::optional(recycled_gradients(graph, program, stage)), of_gradients),
      recompute_(program.stages[static_cast<std::size_t>(stage)].recompute) {
  if (parts_ && storage == kernels::Storage::real) {
    initialize_part();
  } else {
    parameters_.initialize(seed);
  }
}

// Values are those of the whole tensors: a part takes its own.
void StageRunner::initialize_part() {
  const std::int64_t size = kernels::real_bytes(parameters_.precision());
  for (const TensorId id : order_) {
    const Tensor& tensor = graph_.graph->tensor(id);
    const std::int64_t count = tensor.shape.elements_per_sample();
    std::vector<std::byte> whole(static_cast<std::size_t>(count * size));
    kernels::initial_values(tensor, count, seed_, parameters_.precision(), whole.data());
    pack(held_region(tensor.shape.dims, 0, holding(id), group_->index()), whole.data(), size,
         static_cast<std::byte*>(parameters_.value(part_of(id))));
  }
}

TensorId StageRunner::part_of(TensorId tensor) const {
  if (std::find(order_.begin(), order_.end(), tensor) == order_.end()) return -1;
  return parts_ ? parts_->part_of.at(tensor) : tensor;
}

Holding StageRunner::holding(TensorId tensor) const { return parts_ ? parts_->parameters.at(tensor) : Holding{}; }

void StageRunner::drop_repeated(std::size_t first, std::size_t count) {
  if (!parts_ || group_->index() == 0 || parameters_.storage() == kernels::Storage::none) return;
  for (const auto& [tensor, op] : parts_->repeated) {
    const auto place = std::find(parameters_.order().begin(), parameters_.order().end(), tensor);
    const auto position = static_cast<std::size_t>(place - parameters_.order().begin());
    if (position < first || position >= first + count) continue;
    const std::int64_t bytes = parameters_.elements(tensor) * kernels::real_bytes(parameters_.precision());
    std::memset(parameters_.gradient(tensor, op), 0, static_cast<std::size_t>(bytes));
  }
}

std::unique_ptr<kernels::Executable> StageRunner::compile(kernels::Device& device,
                                                          const kernels::CompileOptions& options) {
  if (!parts_) return device.compile(graph_, parameters_, options);
  if (device.storage() == kernels::Storage::none) {
    return compile_emulated_part(*parts_, graph_, *group_, device, parameters_, options);
  }
  return compile_part(*parts_, *graph_.graph, *group_, device, parameters_, options);
}

// Counts the live micro-batches of each row count through the rank's program.
std::map<StageRunner::Key, int> StageRunner::peaks(const Program& program, int rank) const {
  const ProgramStage& stage = program.stages[static_cast<std::size_t>(stage_)];
  const auto replica = replica_of(stage, rank);
  const RankProgram& list = program.ranks[static_cast<std::size_t>(rank)];
  std::map<Key, int> live, most;
  // Every state of a program that does not flush is reached by the iteration after the first that drains.
  const auto lists = unroll(program, program.overlap + 1);
  for (const UnrolledInstruction& step : lists[static_cast<std::size_t>(rank)]) {
    const Instruction& at = list.instructions[static_cast<std::size_t>(step.position)];
    if (at.stage != stage_ || at.micro_batch < 0) continue;
    const Key key{stage.rows[static_cast<std::size_t>(at.micro_batch)][replica].size(), program.training};
    if (key.rows == 0) continue;
    if (at.kind == InstructionKind::forward && at.segment <= 0) most[key] = std::max(most[key], ++live[key]);
    if (ends_micro_batch(program, at)) --live[key];
  }
  return most;
}

void StageRunner::require(const Program& program, int rank) {
  if (program.training && !parts_ &&
      recycled_gradients(*graph_.graph, program, stage_) != parameters_.gradient_places()) {
    throw Error(ExitCode::internal, "the training programs of a run do not recycle the same gradients");
  }
  const auto& instructions = program.ranks[static_cast<std::size_t>(rank)].instructions;
  const bool split = std::any_of(instructions.begin(), instructions.end(), [&](const Instruction& instruction) {
    return instruction.kind == InstructionKind::backward_weight && instruction.stage == stage_;
  });
  for (const auto& [key, live] : peaks(program, rank)) {
    Need& need = needs_[key];
    need.slots = std::max(need.slots, live);
    need.split_backward = need.split_backward || split;
  }
  const int kept = program.post_validation ? 1 : 0;  // the weights before an update that may have to be taken back
  copies_ = std::max({copies_, kept, WeightVersions::needs(program, rank, stage_).copies});
}

kernels::CompileOptions StageRunner::options_for(const Key& key, const Need& need) const {
  kernels::CompileOptions options;
  options.rows = key.rows;
  options.slots = need.slots;
  options.training = key.training;
  options.split_backward = need.split_backward;
  options.seed = seed_;
  if (key.training) options.recompute = recompute_;
  return options;
}

void StageRunner::compile(kernels::Device& device) {
  device_ = &device;
  parameters_.reserve_copies(copies_);
  for (auto& [key, need] : needs_) need.executable = compile(device, options_for(key, need));
}

StageRunner::Bytes StageRunner::bytes_needed(kernels::Device& device, KnownBytes& known) {
  Bytes bytes;
  for (const auto& [key, need] : needs_) {
    const int part = group_ ? group_->index() : 0;
    const auto [entry, is_new] = known.try_emplace({stage_, part, key.rows, key.training, need.split_backward});
    kernels::ExecutableBytes& each = entry->second;
    if (is_new) {
      kernels::CompileOptions options = options_for(key, need);
      options.slots = 0;  // most of the memory
      each = compile(device, options)->bytes();
    }
    bytes.activations += need.slots * each.per_slot;
    bytes.workspace += each.workspace;
  }
  return bytes;
}

std::vector<BoundMicroBatch> StageRunner::bind(const Program& program, int rank) const {
  const ProgramStage& stage = program.stages[static_cast<std::size_t>(stage_)];
  const auto replica = replica_of(stage, rank);
  std::vector<BoundMicroBatch> bound;
  for (const std::vector<RowInterval>& rows : stage.rows) {
    BoundMicroBatch place;
    place.rows = rows[replica];
    if (!place.rows.empty()) place.executable = needs_.at({place.rows.size(), program.training}).executable.get();
    bound.push_back(place);
  }
  return bound;
}

void StageRunner::updated(std::int64_t elements) {
  device_->updated(millrace::Bytes(elements * kernels::real_bytes(parameters_.precision())));
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
