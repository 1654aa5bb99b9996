// Instruction by instruction: computation on executables, messages through the exchange, sums, updates.
#include "runtime/program_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "base/errors.h"
#include "program/attached.h"
#include "program/rank_links.h"
#include "program/weight_segments.h"
#include "runtime/factored_update.h"

namespace millrace::runtime {
namespace {

// Adds the time until its end to `to`.
class Timed {
 public:
  Timed(Seconds& to, const Clock& clock) : to_(to), clock_(clock), start_(clock()) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() { to_ += clock_() - start_; }

 private:
  Seconds& to_;
  const Clock& clock_;
  Seconds start_;
};

// How many rows of `rows` come before the padding at the batch's end.
std::int64_t valid_of(RowInterval rows, std::int64_t valid_rows) {
  return std::clamp<std::int64_t>(valid_rows - rows.begin, 0, rows.size());
}

double real_at(const void* data, std::int64_t index, kernels::Precision precision) {
  return precision == kernels::Precision::fp64 ? static_cast<const double*>(data)[index]
                                               : static_cast<double>(static_cast<const float*>(data)[index]);
}

std::vector<StageRunner*> by_stage(const std::vector<LocalStage>& stages) {
  std::vector<StageRunner*> runners;
  for (const LocalStage& stage : stages) runners.push_back(stage.runner);
  return runners;
}

std::vector<StageRunner*> runners_of(const std::vector<LocalStage>& stages) {
  std::vector<StageRunner*> runners = by_stage(stages);
  std::erase(runners, nullptr);
  return runners;
}

std::vector<std::vector<BoundMicroBatch>> bound(const Program& program, int rank,
                                                const std::vector<LocalStage>& stages) {
  std::vector<std::vector<BoundMicroBatch>> places(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].runner != nullptr) places[s] = stages[s].runner->bind(program, rank);
  }
  return places;
}

// The same on all ranks, also on those that update nothing.
std::int64_t most_updates(const Program& program) {
  std::int64_t most = 0;
  for (const RankProgram& rank : program.ranks) {
    std::map<std::int32_t, std::int64_t> updates;
    for (const Instruction& at : rank.instructions) {
      if (at.kind == InstructionKind::update_weights) most = std::max(most, ++updates[at.bucket]);
    }
  }
  return most;
}

}  // namespace

ProgramRunner::ProgramRunner(const Graph& graph, const Program& program, int rank, std::vector<LocalStage> stages,
                             comm::Transport& transport, Watchdog& watchdog, int id, Clock clock,
                             kernels::SampleDevice* by_sample)
    : graph_(graph),
      program_(program),
      rank_(rank),
      precision_(runners_of(stages).front()->parameters().precision()),
      storage_(runners_of(stages).front()->parameters().storage()),
      watchdog_(watchdog),
      stages_(std::move(stages)),
      slots_(program, bound(program, rank, stages_)),
      local_(graph, program, rank, by_stage(stages_), precision_, storage_),
      exchange_(graph, program, rank, precision_, transport, storage_),
      reducer_(graph, program, runners_of(stages_), rank, transport),
      version_of_(stages_.size(), -1),
      updates_per_iteration_(most_updates(program)),
      id_(id),
      clock_(std::move(clock)),
      open_(static_cast<std::size_t>(program.overlap + 1)) {
  if (by_sample != nullptr && program.training) {
    tree_.emplace(graph, program, runners_of(stages_), *by_sample, rank, transport);
  }
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (stages_[s].runner == nullptr || !program.training) continue;
    version_of_[s] = static_cast<std::int32_t>(versions_.size());
    versions_.emplace_back(stages_[s].runner->parameters(),
                           WeightVersions::needs(program, rank, static_cast<std::int32_t>(s)));
  }
  const auto& instructions = program.ranks[static_cast<std::size_t>(rank)].instructions;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    attached_.push_back(is_computation(instructions[i].kind) ? attached_to(instructions, i)
                                                             : std::vector<std::size_t>());
  }
  for (int i = 0; i < program.overlap + 2 && program.training; ++i) sums_.emplace_back(graph, program, rank, transport);
  for (Iteration& iteration : open_) iteration.updates.resize(program.buckets.size());
  results_.reserve(sums_.size() + 1);
  kept_.resize(stages_.size());
  for (const LocalStage& stage : stages_) {  // room for what the first updates need, before the first step
    if (program.post_validation && stage.optimizer != nullptr) stage.optimizer->keep();
  }
}

WeightVersions* ProgramRunner::versions(std::int32_t stage) {
  const std::int32_t index = version_of_[static_cast<std::size_t>(stage)];
  return index < 0 ? nullptr : &versions_[static_cast<std::size_t>(index)];
}

void ProgramRunner::train(Feed& feed, const dataset::Batch& batch, const StepSettings& settings,
                          std::int64_t& updates) {
  if (round_ == 0) {
    for (WeightVersions& versions : versions_) versions.begin();
  }
  slowdown_ = settings.slowdown;
  Iteration& begun = open(round_);
  begun.settings = settings;
  begun.valid = batch.valid;
  begun.row_weight = 1.0 / static_cast<double>(std::max<std::int64_t>(1, batch.valid));
  begun.updates_before = updates;
  updates_ = &updates;
  begun.gradient_scale = 1;
  begun.skipped = false;
  std::fill(begun.updates.begin(), begun.updates.end(), 0);
  sums(round_).clear();
  if (tree_) tree_->begin();
  run_round(round_ + 1, &feed, &batch);
  if (!begun.skipped) updates += updates_per_iteration_;
  ++times_.iterations;
}

void ProgramRunner::finish() {
  if (round_ == 0) return;
  const std::int64_t begun = round_;
  for (int drained = 0; drained < program_.overlap; ++drained) run_round(begun, nullptr, nullptr);
  finish_sums();
  round_ = 0;
}

bool ProgramRunner::take(StepResult& result) {
  if (results_.empty()) return false;
  result = results_.front();
  results_.erase(results_.begin());
  return true;
}

void ProgramRunner::evaluate(Feed& feed, const dataset::Batch& batch, double row_weight, StepSums& sums) {
  Iteration& only = open(0);
  only.valid = batch.valid;
  only.row_weight = row_weight;
  evaluation_ = &sums;
  slots_.clear();
  round_ = 0;
  run_round(1, &feed, &batch);
}

void ProgramRunner::run_round(std::int64_t begun, Feed* feed, const dataset::Batch* batch) {
  const auto& instructions = program_.ranks[static_cast<std::size_t>(rank_)].instructions;
  const Seconds start = clock_();
  if (rows_ != nullptr) rows_->reserve(rows_->size() + instructions.size());
  if (round_ == program_.overlap + 1) {
    for (WeightVersions& versions : versions_) versions.first_iteration_is_over();
  }
  const std::size_t recorded = rows_ == nullptr ? 0 : rows_->size();
  bool validates = program_.post_validation && round_ > 0;  // until the norm is known
  exchange_.begin(round_, begun, validates);
  for (std::size_t position = 0; position < instructions.size(); ++position) {
    const Instruction& instruction = instructions[position];
    const std::int64_t iteration = round_ - instruction.lag;
    // Only stashes are made for an iteration to come; the drain knows that none comes.
    const bool ahead = instruction.lag < 0 && feed != nullptr;
    if (iteration < 0 || (iteration >= begun && !ahead)) continue;
    const bool is_norm = program_.post_validation && instruction.kind == InstructionKind::reduce_norm;
    if (is_norm && !validates) continue;  // the round began again because of it
    watchdog_.operation(watch_code(id_, static_cast<std::int64_t>(position)));
    const Seconds begin = clock_() - start;
    const Seconds busy_before = times_.busy;
    inside_ = &attached_[position];
    if (is_norm) {
      validates = false;
      if (!validate(iteration)) {
        exchange_.begin(round_, begun);
        if (rows_ != nullptr) rows_->resize(recorded);
        position = static_cast<std::size_t>(-1);  // the next is the first
        continue;
      }
    } else {
      execute(instruction, iteration, feed, batch);
      set_waits_apart(instruction);
      prolong(times_.busy - busy_before);
    }
    if (rows_ != nullptr) {
      rows_->push_back({rank_, static_cast<std::int32_t>(position), instruction, begin, clock_() - start});
    }
  }
  if (program_.shard_optimizer && program_.training) {
    const Timed timed(times_.exposed_reductions, clock_);
    reducer_.finish_gathers(watchdog_);
  }
  if (program_.training) end_round();
  ++round_;
}

// What a computation waited for ranks of its replica was no work.
void ProgramRunner::set_waits_apart(const Instruction& instruction) {
  if (!is_computation(instruction.kind)) return;
  PartGroup* const group = stages_[static_cast<std::size_t>(instruction.stage)].runner->group();
  if (group == nullptr) return;
  const Seconds waited = group->take_waited();
  times_.busy -= waited;
  times_.exposed_tensor += waited;
}

// A slower rank: what its kernels took is waited for (slowdown - 1) times more, beside its peers.
void ProgramRunner::prolong(Seconds took) {
  if (slowdown_ <= 1 || took == Seconds(0)) return;
  const Timed timed(times_.busy, clock_);
  std::this_thread::sleep_for(std::chrono::duration<double>(took.value() * (slowdown_ - 1)));
}

// Losses and norms of the iteration that is complete now are summed while the next round runs.
void ProgramRunner::end_round() {
  if (program_.norm) return;
  finish_sums();
  const std::int64_t complete = round_ - program_.overlap;
  if (complete < 0) return;
  count_signals(complete);
  sums(complete).start();
  under_way_ = complete;
}

void ProgramRunner::finish_sums() {
  if (under_way_ < 0) return;
  const Timed timed(times_.exposed_sums, clock_);
  sums(under_way_).finish(watchdog_);
  note_result(sums(under_way_), sums(under_way_).left_out());
  under_way_ = -1;
}

void ProgramRunner::count_signals(std::int64_t iteration) {
  SignalWatch* const signals = open(iteration).settings.signals;
  if (signals != nullptr) sums(iteration).add_signals(signals->take());
}

void ProgramRunner::note_result(const StepSums& sums, bool skipped) {
  StepResult result;
  result.loss = sums.loss();
  result.correct = sums.correct();
  result.gradient_norm = sums.gradient_norm();
  result.skipped = skipped;
  result.signals = sums.signals();
  results_.push_back(result);
}

void ProgramRunner::execute(const Instruction& instruction, std::int64_t iteration, Feed* feed,
                            const dataset::Batch* batch) {
  if (goes_on(instruction)) return;
  switch (instruction.kind) {
    case InstructionKind::forward:
      return forward(instruction, iteration, *feed, *batch);
    case InstructionKind::backward:
    case InstructionKind::backward_input:
    case InstructionKind::backward_weight:
    case InstructionKind::recompute:
      return backward(instruction, iteration);
    case InstructionKind::receive_activation:
    case InstructionKind::receive_gradient:
      return receive(instruction, iteration);
    case InstructionKind::send_activation:
    case InstructionKind::send_gradient:
      return send(instruction, iteration);
    case InstructionKind::reduce_gradients:
    case InstructionKind::update_weights:
    case InstructionKind::gather_weights:
      if (instruction.op < 0) of_bucket(instruction, iteration);  // else it has happened in the computation before
      return;
    case InstructionKind::reduce_norm:
      return reduce_norm(iteration);
    case InstructionKind::stash_weights:
      return versions(instruction.stage)->stash(iteration, instruction.micro_batch);
    case InstructionKind::load_weights:
      return versions(instruction.stage)->load(iteration, instruction.micro_batch);
    case InstructionKind::drop_stash:
      return versions(instruction.stage)->drop(iteration, instruction.micro_batch);
    default:
      throw Error(ExitCode::internal, "the runtime does not execute " + std::string(name(instruction.kind)));
  }
}

void ProgramRunner::forward(const Instruction& instruction, std::int64_t iteration, Feed& feed,
                            const dataset::Batch& batch) {
  WeightVersions* const weights = versions(instruction.stage);
  if (weights != nullptr) weights->select();
  const BoundMicroBatch& at = slots_.at(instruction.stage, iteration, instruction.micro_batch);
  if (at.executable != nullptr) {
    const Timed timed(times_.busy, clock_);
    const Iteration& its = open(iteration);
    feed.fill(stages_[static_cast<std::size_t>(instruction.stage)].runner->graph(), at, precision_);
    local_.fill(instruction.stage, iteration, instruction.micro_batch, slots_);
    kernels::BatchContext context;
    context.step = its.settings.step;
    context.first_row = at.rows.begin;
    context.samples =
        std::span(batch.ids).subspan(static_cast<std::size_t>(at.rows.begin), static_cast<std::size_t>(at.rows.size()));
    context.valid_rows = valid_of(at.rows, its.valid);
    context.row_weight = its.row_weight;
    at.executable->forward(at.slot, context);
    if (computes_loss(instruction.stage) && counts(instruction.stage)) {
      StepSums& to = evaluation_ != nullptr ? *evaluation_ : sums(iteration);
      take_loss(at, context.valid_rows, its.row_weight, to);
    }
  }
  if (weights != nullptr) weights->used();
}

void ProgramRunner::backward(const Instruction& instruction, std::int64_t iteration) {
  WeightVersions& weights = *versions(instruction.stage);
  weights.select();
  done_inside_ = 0;
  iteration_inside_ = iteration;
  const ProgramStage& stage = program_.stages[static_cast<std::size_t>(instruction.stage)];
  const BoundMicroBatch& at = slots_.at(instruction.stage, iteration, instruction.micro_batch);
  if (at.executable != nullptr) {
    const Timed timed(times_.busy, clock_);
    within_busy_ = true;
    const bool begins =
        instruction.kind == InstructionKind::backward || instruction.kind == InstructionKind::backward_input;
    if (begins) {
      const Iteration& its = open(iteration);
      if (computes_loss(instruction.stage)) seed_loss(at, valid_of(at.rows, its.valid), its.row_weight);
      local_.complete(instruction.stage, at);
    }
    at.executable->observe(inside_->empty() ? nullptr : this);
    switch (instruction.kind) {
      case InstructionKind::recompute:
        at.executable->recompute(at.slot);
        break;
      case InstructionKind::backward_weight:
        if (instruction.segment < 0) {
          at.executable->backward_weight(at.slot);
        } else {
          at.executable->backward_weight_of(at.slot, weight_ops(stage, instruction.segment));
        }
        break;
      case InstructionKind::backward_input:
        at.executable->backward_input(at.slot);
        break;
      default:
        at.executable->backward(at.slot);
    }
    if (begins) local_.give(instruction.stage, iteration, instruction.micro_batch, slots_);
  }
  within_busy_ = false;
  done(0);  // what the executable has not told of
  if (instruction.kind == InstructionKind::recompute) return;
  if (instruction.kind != InstructionKind::backward_weight) weights.used();
  const bool is_part = instruction.kind == InstructionKind::backward_weight && !ends_micro_batch(program_, instruction);
  if (instruction.kind != InstructionKind::backward_input && !is_part) {
    slots_.give_back(instruction.stage, iteration, instruction.micro_batch);
  }
}

// The gradients of `op` and of all operators behind it are complete: what waited for them happens, in the order of the
// list, in which it is the same on all owners.
void ProgramRunner::done(OpId op) {
  const auto& instructions = program_.ranks[static_cast<std::size_t>(rank_)].instructions;
  for (; done_inside_ < inside_->size(); ++done_inside_) {
    const Instruction& next = instructions[(*inside_)[done_inside_]];
    if (next.op < op) return;
    of_bucket(next, iteration_inside_);
  }
}

void ProgramRunner::of_bucket(const Instruction& instruction, std::int64_t iteration) {
  switch (instruction.kind) {
    case InstructionKind::update_weights:
      return update(instruction.bucket, iteration);
    case InstructionKind::gather_weights:
      return reducer_.gather(instruction.bucket);
    default:
      if (!tree_) reducer_.start(instruction.bucket);  // else all of them are summed at once, before the norm
  }
}

// An executable makes its collectives itself, where the segments meet: all of a divided computation runs with its last
// segment.
bool ProgramRunner::goes_on(const Instruction& at) const {
  if (at.collective >= 0) return true;
  if (at.segment < 0) return false;
  return at.segment < collective_count(program_, at);
}

// Every rank of a replica knows the loss: the first one tells it.
bool ProgramRunner::counts(std::int32_t stage) const {
  const PartGroup* const group = stages_[static_cast<std::size_t>(stage)].runner->group();
  return group == nullptr || group->index() == 0;
}

bool ProgramRunner::computes_loss(std::int32_t stage) const {
  const auto& ops = program_.stages[static_cast<std::size_t>(stage)].ops;
  return graph_.loss() >= 0 && std::binary_search(ops.begin(), ops.end(), graph_.loss());
}

void ProgramRunner::take_loss(const BoundMicroBatch& at, std::int64_t valid_rows, double row_weight,
                              StepSums& sums) const {
  const auto& outputs = graph_.op(graph_.loss()).outputs;
  const void* loss = at.executable->output(at.slot, outputs[0]);
  if (loss == nullptr) return;  // the tensors do not exist
  for (std::int64_t row = 0; row < valid_rows; ++row) sums.add_loss(row_weight * real_at(loss, row, precision_));
  if (outputs.size() < 2) return;
  const void* correct = at.executable->output(at.slot, outputs[1]);
  for (std::int64_t row = 0; row < valid_rows; ++row) sums.add_correct(row_weight * real_at(correct, row, precision_));
}

// A sample's loss weighs 1 / (valid rows of the global batch); padding weighs 0 (METHODS 4).
void ProgramRunner::seed_loss(const BoundMicroBatch& at, std::int64_t valid_rows, double row_weight) const {
  void* gradient = at.executable->output_gradient(at.slot, graph_.op(graph_.loss()).outputs[0]);
  if (gradient == nullptr) return;
  for (std::int64_t row = 0; row < at.rows.size(); ++row) {
    const double weight = row < valid_rows ? row_weight : 0.0;
    if (precision_ == kernels::Precision::fp64) {
      static_cast<double*>(gradient)[row] = weight;
    } else {
      static_cast<float*>(gradient)[row] = static_cast<float>(weight);
    }
  }
}

void ProgramRunner::receive(const Instruction& instruction, std::int64_t iteration) {
  const Transfer& t = program_.transfers[static_cast<std::size_t>(instruction.transfer)];
  const BoundMicroBatch& at = slots_.at(t.to_stage, iteration, t.micro_batch);
  const void* data = nullptr;
  {
    const Timed timed(times_.exposed_messages, clock_);
    data = exchange_.receive(instruction.transfer, watchdog_);
  }
  if (t.direction == Direction::gradient) {
    local_.add_received(t, at, data);
  } else if (storage_ == kernels::Storage::real) {
    const std::int64_t bytes = exchange_.transfer_bytes(instruction.transfer);
    const std::int64_t offset = (t.rows.begin - at.rows.begin) * (bytes / t.rows.size());
    std::memcpy(static_cast<std::byte*>(at.executable->input(at.slot, t.tensor)) + offset, data,
                static_cast<std::size_t>(bytes));
  }
  exchange_.release(instruction.transfer);
}

void ProgramRunner::send(const Instruction& instruction, std::int64_t iteration) {
  const Transfer& t = program_.transfers[static_cast<std::size_t>(instruction.transfer)];
  const std::int64_t row_bytes = exchange_.transfer_bytes(instruction.transfer) / t.rows.size();
  const bool activation = t.direction == Direction::activation;
  // Input gradients are those of the last backward, whose slot may be free again.
  const BoundMicroBatch& at =
      activation ? slots_.at(t.from_stage, iteration, t.micro_batch) : slots_.without_slot(t.from_stage, t.micro_batch);
  const void* data = activation ? at.executable->output(at.slot, t.tensor) : at.executable->input_gradient(0, t.tensor);
  const auto* rows = static_cast<const std::byte*>(data);
  if (storage_ == kernels::Storage::real) rows += (t.rows.begin - at.rows.begin) * row_bytes;
  {
    const Timed timed(times_.exposed_messages, clock_);
    exchange_.make_room(instruction.transfer, watchdog_);
  }
  exchange_.send(instruction.transfer, rows);
}

void ProgramRunner::reduce_norm(std::int64_t iteration) {
  StepSums& sums = this->sums(iteration);
  if (tree_) tree_->reduce(reducer_, watchdog_);
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(program_.buckets.size()); ++b) {
    if (reducer_.copies(b).empty()) continue;
    {
      const Timed timed(times_.exposed_reductions, clock_);
      reducer_.finish(b, watchdog_);
    }
    const Timed timed(times_.busy, clock_);
    sums.add_squares(b, reducer_.place(b));
  }
  count_signals(iteration);
  {
    const Timed timed(times_.exposed_sums, clock_);
    sums.reduce(watchdog_);
  }
  // Every rank sees the same sums, so all skip or none does.
  Iteration& its = open(iteration);
  const double norm = sums.gradient_norm();
  its.skipped = !std::isfinite(norm) || !std::isfinite(sums.loss());
  if (its.settings.clip_norm > 0 && norm > its.settings.clip_norm) its.gradient_scale = its.settings.clip_norm / norm;
  note_result(sums, its.skipped);
}

void ProgramRunner::update(std::int32_t bucket, std::int64_t iteration) {
  {
    const Timed timed(times_.exposed_reductions, clock_);
    reducer_.finish(bucket, watchdog_);  // at once inside of a backward: only buckets of one owner are updated there
  }
  Seconds beside{};
  const Timed timed(within_busy_ ? beside : times_.busy, clock_);
  Iteration& its = open(iteration);
  ++its.updates[static_cast<std::size_t>(bucket)];
  const BucketPlace& place = reducer_.place(bucket);
  if (program_.buckets[static_cast<std::size_t>(bucket)].factor_rows > 0 && storage_ == kernels::Storage::real) {
    apply_in_parts(bucket, place, iteration);
  } else if (program_.norm ? !its.skipped : sums(iteration).add_finite_squares(bucket, place)) {
    apply(bucket, its);
  }
  if (program_.post_validation) {
    reducer_.clear_statistics(bucket);
  } else {
    reducer_.clear(bucket);
  }
  reducer_.poll();
}

UpdateScalars ProgramRunner::scalars_of(std::int32_t bucket, const Iteration& its) {
  UpdateScalars scalars;
  scalars.learning_rate = its.settings.learning_rate;
  scalars.gradient_scale = its.gradient_scale;
  scalars.step = its.updates_before + its.updates[static_cast<std::size_t>(bucket)];
  return scalars;
}

// No norm is waited for, and this rank has one copy: program/factored_gradients.h.
void ProgramRunner::apply_in_parts(std::int32_t bucket, const BucketPlace& place, std::int64_t iteration) {
  const std::int32_t stage = place.runner->stage();
  versions(stage)->before_update();
  Optimizer& optimizer = *stages_[static_cast<std::size_t>(stage)].optimizer;
  const FactoredUpdate done =
      update_factored(place.runner->parameters(), place.first, optimizer, scalars_of(bucket, open(iteration)));
  sums(iteration).add_parts(bucket, place, done.squares, done.finite);
  place.runner->updated(place.part.size());
}

void ProgramRunner::apply(std::int32_t bucket, Iteration& its) {
  const UpdateScalars scalars = scalars_of(bucket, its);
  for (const BucketPlace& copy : reducer_.copies(bucket)) {
    const std::int32_t stage = copy.runner->stage();
    versions(stage)->before_update();
    keep_before_update(stage);
    stages_[static_cast<std::size_t>(stage)].optimizer->update(copy.first, copy.count, scalars);
    copy.runner->updated(copy.part.size());
  }
}

StepTimes ProgramRunner::times() const {
  StepTimes times = times_;
  times.reductions_in_flight = reducer_.in_flight();
  return times;
}

}  // namespace millrace::runtime
