// Instruction by instruction: computation on executables, messages through the exchange, sums, updates.
#include "runtime/program_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>
#include <tuple>

#include "base/errors.h"

namespace millrace::runtime {
namespace {

template <class Real>
void add(void* destination, const void* source, std::int64_t count) {
  auto* to = static_cast<Real*>(destination);
  const auto* from = static_cast<const Real*>(source);
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// A slower rank: what a kernel took is waited for (factor - 1) times more, beside its peers.
void prolong(Seconds took, double factor) {
  std::this_thread::sleep_for(std::chrono::duration<double>(took.value() * (factor - 1)));
}

bool computes(InstructionKind kind) {
  return kind == InstructionKind::forward || kind == InstructionKind::backward ||
         kind == InstructionKind::backward_input || kind == InstructionKind::backward_weight ||
         kind == InstructionKind::update_weights;
}

// How many rows of `rows` come before the padding at the batch's end.
std::int64_t valid_of(RowInterval rows, std::int64_t valid_rows) {
  return std::clamp<std::int64_t>(valid_rows - rows.begin, 0, rows.size());
}

double real_at(const void* data, std::int64_t index, kernels::Precision precision) {
  return precision == kernels::Precision::fp64 ? static_cast<const double*>(data)[index]
                                               : static_cast<double>(static_cast<const float*>(data)[index]);
}

std::vector<StageRunner*> runners_of(const std::vector<LocalStage>& stages) {
  std::vector<StageRunner*> runners;
  for (const LocalStage& stage : stages) {
    if (stage.runner != nullptr) runners.push_back(stage.runner);
  }
  return runners;
}

// A gradient that comes back from several stages: the first stage's rows are copied, the others' added (METHODS 4:
// in the order of the receives, never in order of arrival).
std::vector<bool> adding_transfers(const Program& program, int rank) {
  std::vector<bool> adds(program.transfers.size(), false);
  std::set<std::tuple<TensorId, int, int>> seen;              // tensor, receiving stage, micro-batch
  std::set<std::tuple<TensorId, int, int, int>> first_stage;  // … and the stage that was first
  for (const Instruction& instruction : program.ranks[static_cast<std::size_t>(rank)].instructions) {
    if (instruction.kind != InstructionKind::receive_gradient) continue;
    const auto id = static_cast<std::size_t>(instruction.transfer);
    const Transfer& t = program.transfers[id];
    const bool fresh = seen.insert({t.tensor, t.to_stage, t.micro_batch}).second;
    if (fresh) first_stage.insert({t.tensor, t.to_stage, t.micro_batch, t.from_stage});
    adds[id] = !first_stage.contains({t.tensor, t.to_stage, t.micro_batch, t.from_stage});
  }
  return adds;
}

}  // namespace

ProgramRunner::ProgramRunner(const Graph& graph, const Program& program, int rank, std::vector<LocalStage> stages,
                             comm::Transport& transport, Watchdog& watchdog, int id, Clock clock)
    : graph_(graph),
      program_(program),
      rank_(rank),
      precision_(runners_of(stages).front()->parameters().precision()),
      watchdog_(watchdog),
      stages_(std::move(stages)),
      bound_(stages_.size()),
      adds_(adding_transfers(program, rank)),
      exchange_(graph, program, rank, precision_, transport, runners_of(stages_).front()->parameters().storage()),
      reducer_(program, runners_of(stages_), rank, transport),
      sums_(graph, program, rank, transport),
      id_(id),
      clock_(std::move(clock)) {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (stages_[s].runner != nullptr) bound_[s] = stages_[s].runner->bind(program, rank);
  }
  const auto& instructions = program.ranks[static_cast<std::size_t>(rank)].instructions;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const InstructionKind kind = instructions[i].kind;
    if (kind == InstructionKind::backward || kind == InstructionKind::backward_weight) {
      last_backward_ = static_cast<std::int64_t>(i);
    }
  }
}

StepResult ProgramRunner::train(Feed& feed, const dataset::Batch& batch, const StepSettings& settings,
                                std::int64_t& updates) {
  settings_ = settings;
  updates_ = updates + 1;
  row_weight_ = 1.0 / static_cast<double>(std::max<std::int64_t>(1, batch.valid));
  result_ = {};
  sums_.clear();
  for (const LocalStage& stage : stages_) {
    if (stage.runner != nullptr) stage.runner->parameters().zero_gradients();
  }
  run(feed, batch, sums_);
  if (!result_.skipped) updates = updates_;
  ++times_.iterations;
  return result_;
}

void ProgramRunner::evaluate(Feed& feed, const dataset::Batch& batch, double row_weight, StepSums& sums) {
  row_weight_ = row_weight;
  run(feed, batch, sums);
}

void ProgramRunner::run(Feed& feed, const dataset::Batch& batch, StepSums& sums) {
  const auto& instructions = program_.ranks[static_cast<std::size_t>(rank_)].instructions;
  const Seconds start = clock_();
  exchange_.begin();
  for (std::size_t position = 0; position < instructions.size(); ++position) {
    const Instruction& instruction = instructions[position];
    watchdog_.operation(watch_code(id_, static_cast<std::int64_t>(position)));
    const Seconds begin = clock_() - start;
    execute(instruction, feed, batch, sums);
    if (static_cast<std::int64_t>(position) == last_backward_) {
      for (const LocalStage& stage : stages_) {
        if (stage.runner != nullptr) stage.runner->parameters().combine_uses();
      }
    }
    if (settings_.slowdown > 1 && computes(instruction.kind)) prolong(clock_() - start - begin, settings_.slowdown);
    const Seconds end = clock_() - start;
    if (computes(instruction.kind) && program_.training) times_.busy += end - begin;
    if (rows_ != nullptr) rows_->push_back({rank_, static_cast<std::int32_t>(position), instruction, begin, end});
  }
}

void ProgramRunner::execute(const Instruction& instruction, Feed& feed, const dataset::Batch& batch, StepSums& sums) {
  switch (instruction.kind) {
    case InstructionKind::forward:
      return forward(instruction, feed, batch, sums);
    case InstructionKind::backward:
    case InstructionKind::backward_input:
    case InstructionKind::backward_weight:
      return backward(instruction, batch);
    case InstructionKind::receive_activation:
    case InstructionKind::receive_gradient:
      return receive(instruction);
    case InstructionKind::send_activation:
    case InstructionKind::send_gradient:
      return send(instruction);
    case InstructionKind::reduce_gradients:
      return reducer_.start(instruction.bucket);
    case InstructionKind::reduce_norm:
      return reduce_norm();
    case InstructionKind::update_weights:
      return update(instruction);
    default:
      throw Error(ExitCode::internal, "the runtime does not execute " + std::string(name(instruction.kind)));
  }
}

void ProgramRunner::forward(const Instruction& instruction, Feed& feed, const dataset::Batch& batch, StepSums& sums) {
  const BoundMicroBatch& at = place(instruction.stage, instruction.micro_batch);
  if (at.executable == nullptr) return;
  const StageGraph& stage = stages_[static_cast<std::size_t>(instruction.stage)].runner->graph();
  feed.fill(stage, at, precision_);
  kernels::BatchContext context;
  context.step = settings_.step;
  context.samples =
      std::span(batch.ids).subspan(static_cast<std::size_t>(at.rows.begin), static_cast<std::size_t>(at.rows.size()));
  context.valid_rows = valid_of(at.rows, batch.valid);
  context.row_weight = row_weight_;
  at.executable->forward(at.slot, context);
  if (computes_loss(instruction.stage)) take_loss(at, context.valid_rows, sums);
}

void ProgramRunner::backward(const Instruction& instruction, const dataset::Batch& batch) {
  const BoundMicroBatch& at = place(instruction.stage, instruction.micro_batch);
  if (at.executable == nullptr) return;
  if (instruction.kind == InstructionKind::backward_weight) return at.executable->backward_weight(at.slot);
  if (computes_loss(instruction.stage)) seed_loss(at, valid_of(at.rows, batch.valid));
  if (instruction.kind == InstructionKind::backward) return at.executable->backward(at.slot);
  at.executable->backward_input(at.slot);
}

bool ProgramRunner::computes_loss(std::int32_t stage) const {
  const auto& ops = program_.stages[static_cast<std::size_t>(stage)].ops;
  return graph_.loss() >= 0 && std::binary_search(ops.begin(), ops.end(), graph_.loss());
}

void ProgramRunner::take_loss(const BoundMicroBatch& at, std::int64_t valid_rows, StepSums& sums) const {
  const auto& outputs = graph_.op(graph_.loss()).outputs;
  const void* loss = at.executable->output(at.slot, outputs[0]);
  if (loss == nullptr) return;  // the tensors do not exist
  for (std::int64_t row = 0; row < valid_rows; ++row) sums.add_loss(row_weight_ * real_at(loss, row, precision_));
  if (outputs.size() < 2) return;
  const void* correct = at.executable->output(at.slot, outputs[1]);
  for (std::int64_t row = 0; row < valid_rows; ++row) sums.add_correct(row_weight_ * real_at(correct, row, precision_));
}

// A sample's loss weighs 1 / (valid rows of the global batch); padding weighs 0 (METHODS 4).
void ProgramRunner::seed_loss(const BoundMicroBatch& at, std::int64_t valid_rows) const {
  void* gradient = at.executable->output_gradient(at.slot, graph_.op(graph_.loss()).outputs[0]);
  if (gradient == nullptr) return;
  for (std::int64_t row = 0; row < at.rows.size(); ++row) {
    const double weight = row < valid_rows ? row_weight_ : 0.0;
    if (precision_ == kernels::Precision::fp64) {
      static_cast<double*>(gradient)[row] = weight;
    } else {
      static_cast<float*>(gradient)[row] = static_cast<float>(weight);
    }
  }
}

void ProgramRunner::receive(const Instruction& instruction) {
  const auto id = static_cast<std::size_t>(instruction.transfer);
  const Transfer& t = program_.transfers[id];
  const BoundMicroBatch& at = place(t.to_stage, t.micro_batch);
  const void* data = exchange_.receive(instruction.transfer, watchdog_);
  const std::int64_t bytes = exchange_.transfer_bytes(instruction.transfer);
  const std::int64_t offset = (t.rows.begin - at.rows.begin) * (bytes / t.rows.size());
  void* buffer = t.direction == Direction::activation ? at.executable->input(at.slot, t.tensor)
                                                      : at.executable->output_gradient(at.slot, t.tensor);
  if (buffer == nullptr) return exchange_.release(instruction.transfer);
  auto* destination = static_cast<std::byte*>(buffer) + offset;
  if (!adds_[id]) {
    std::memcpy(destination, data, static_cast<std::size_t>(bytes));
  } else if (precision_ == kernels::Precision::fp64) {
    add<double>(destination, data, bytes / 8);
  } else {
    add<float>(destination, data, bytes / 4);
  }
  exchange_.release(instruction.transfer);
}

void ProgramRunner::send(const Instruction& instruction) {
  const Transfer& t = program_.transfers[static_cast<std::size_t>(instruction.transfer)];
  const BoundMicroBatch& at = place(t.from_stage, t.micro_batch);
  const std::int64_t row_bytes = exchange_.transfer_bytes(instruction.transfer) / t.rows.size();
  const void* data = t.direction == Direction::activation ? at.executable->output(at.slot, t.tensor)
                                                          : at.executable->input_gradient(at.slot, t.tensor);
  const auto* rows = static_cast<const std::byte*>(data);
  if (rows != nullptr) rows += (t.rows.begin - at.rows.begin) * row_bytes;
  exchange_.send(instruction.transfer, rows, watchdog_);
}

void ProgramRunner::reduce_norm() {
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(program_.buckets.size()); ++b) {
    const BucketPlace& stored = reducer_.place(b);
    if (stored.runner == nullptr) continue;
    reducer_.wait(b, watchdog_);
    sums_.add_squares(b, stored);
  }
  sums_.reduce(watchdog_);
  result_.loss = sums_.loss();
  result_.correct = sums_.correct();
  result_.gradient_norm = sums_.gradient_norm();
  // Every rank sees the same sums, so all skip or none does.
  result_.skipped = !std::isfinite(result_.gradient_norm) || !std::isfinite(result_.loss);
}

void ProgramRunner::update(const Instruction& instruction) {
  if (result_.skipped) return;
  if (!program_.norm) reducer_.wait(instruction.bucket, watchdog_);
  const BucketPlace& stored = reducer_.place(instruction.bucket);
  UpdateScalars scalars;
  scalars.learning_rate = settings_.learning_rate;
  scalars.step = updates_;
  if (settings_.clip_norm > 0 && result_.gradient_norm > settings_.clip_norm) {
    scalars.gradient_scale = settings_.clip_norm / result_.gradient_norm;
  }
  stages_[static_cast<std::size_t>(stored.runner->stage())].optimizer->update(stored.first, stored.count, scalars);
  stored.runner->updated(stored.first, stored.count);
}

const BoundMicroBatch& ProgramRunner::place(std::int32_t stage, std::int32_t micro_batch) const {
  return bound_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(micro_batch)];
}

}  // namespace millrace::runtime
