// The training loop.
#include "runtime/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "comm/shared_error.h"
#include "program/buckets.h"
#include "program/describe.h"
#include "runtime/learning_rate.h"
#include "runtime/process_memory.h"
#include "runtime/threads.h"

namespace millrace::runtime {
namespace {

constexpr int kFirstEvaluationId = 1000;                         // training programs have watch ids below
constexpr std::int64_t kEvaluationSums = std::int64_t{1} << 48;  // watch code of the sums after an evaluation
constexpr std::int64_t kCheckpoint = kEvaluationSums + 1;        // and of what the ranks tell of a checkpoint

constexpr double kNotComputed = std::numeric_limits<double>::quiet_NaN();

Seconds median(std::vector<double> seconds) {
  if (seconds.empty()) return Seconds(0);
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  if (seconds.size() % 2 == 1) return Seconds(*middle);
  return Seconds((*middle + *std::max_element(seconds.begin(), middle)) / 2);
}

// Warm-up stays out of the median: two iterations, or one of fewer than five (INTERFACES 9).
Seconds steady_time(const std::vector<double>& seconds) {
  const std::size_t warm_up = seconds.size() >= 5 ? 2 : seconds.size() > 1 ? 1 : 0;
  return median({seconds.begin() + static_cast<std::ptrdiff_t>(warm_up), seconds.end()});
}

// Gradients of this rank are added to those of others.
bool is_reduced(const Program& program, int rank) {
  return std::any_of(program.buckets.begin(), program.buckets.end(), [&](const auto& bucket) {
    return bucket.owners.size() > 1 && std::binary_search(bucket.owners.begin(), bucket.owners.end(), rank);
  });
}

kernels::Allocator allocator(comm::Transport& transport) {
  return [&transport](std::int64_t bytes) { return transport.allocate(bytes); };
}

std::vector<const Program*> pointers(const std::vector<Program>& programs) {
  std::vector<const Program*> all;
  for (const Program& program : programs) all.push_back(&program);
  return all;
}

}  // namespace

std::unique_ptr<kernels::Device> make_device(const TrainOptions& options) {
  auto device = kernels::make_device(options.kernels, options.precision, options.variants);
  if (!options.any_grid) return device;
  use_threads(1);  // the sums inside a kernel depend on the number of threads
  return std::make_unique<kernels::SampleDevice>(std::move(device));
}

Trainer::Trainer(const Graph& graph, const Programs& programs, const TrainOptions& options, Surroundings surroundings)
    : graph_(graph),
      programs_(programs),
      options_(options),
      around_(std::move(surroundings)),
      watchdog_(options.stall_limit,
                [this](std::int64_t code, Seconds waited) { around_.stalled(describe_wait(code, waited)); }),
      own_device_(around_.device == nullptr ? make_device(options) : nullptr),
      device_(around_.device == nullptr ? *own_device_ : *around_.device),
      by_sample_(dynamic_cast<kernels::SampleDevice*>(own_device_.get())) {
  const int rank = around_.transport.rank();
  const Program& first = programs.train.front();
  stages_.resize(first.stages.size());
  for (std::size_t s = 0; s < first.stages.size(); ++s) {
    const auto& ranks = first.stages[s].ranks;
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
    stage_runners_.push_back(std::make_unique<StageRunner>(
        graph, first, static_cast<std::int32_t>(s), options.precision, options.seed, device_.storage(),
        PartGroup::make(first.stages[s], rank, &around_.transport, &watchdog_, around_.clock),
        is_reduced(first, rank) ? allocator(around_.transport) : kernels::Allocator()));
    StageRunner& runner = *stage_runners_.back();
    for (const auto* list : {&programs.train, &programs.evaluation}) {
      for (const Program& program : *list) runner.require(program, rank);
    }
    runner.compile(device_);
    optimizers_.push_back(std::make_unique<Optimizer>(runner.part_graph(), runner.parameters(), options.optimizer,
                                                      kept_states(graph, first, runner.stage(), rank)));
    stages_[s] = {&runner, optimizers_.back().get()};
  }
  device_.compiled();
  train_ = make_runners(programs.train, 0);
  evaluation_ = make_runners(programs.evaluation, kFirstEvaluationId);
  train_feed_ = std::make_unique<Feed>(graph, pointers(programs.train), rank, around_.source, dataset::Split::train,
                                       around_.order);
  if (programs.evaluation.empty()) return;
  const auto order = dataset::SampleOrder::in_file_order(around_.source.samples(dataset::Split::test),
                                                         programs.evaluation.front().batch, dataset::Tail::uneven);
  evaluation_feed_ =
      std::make_unique<Feed>(graph, pointers(programs.evaluation), rank, around_.source, dataset::Split::test, order);
  evaluation_sums_.emplace(graph, first, rank, around_.transport);
}

std::vector<std::unique_ptr<ProgramRunner>> Trainer::make_runners(const std::vector<Program>& programs, int first_id) {
  std::vector<std::unique_ptr<ProgramRunner>> runners;
  for (const Program& program : programs) {
    const int id = first_id + static_cast<int>(runners.size());
    runners.push_back(std::make_unique<ProgramRunner>(graph_, program, around_.transport.rank(), stages_,
                                                      around_.transport, watchdog_, id, around_.clock, by_sample_));
  }
  return runners;
}

ProgramRunner& Trainer::runner_for(std::vector<std::unique_ptr<ProgramRunner>>& runners, std::size_t rows) const {
  const auto runner = std::find_if(runners.begin(), runners.end(), [&](const std::unique_ptr<ProgramRunner>& r) {
    return r->program().batch == static_cast<std::int64_t>(rows);
  });
  if (runner == runners.end()) throw Error(ExitCode::internal, fmt::format("no program for a batch of {} rows", rows));
  return **runner;
}

void Trainer::resume(const FoundCheckpoint& checkpoint) {
  read_tensors(checkpoint, graph_, stages_);
  counters_ = checkpoint.manifest.counters;
}

Outcome Trainer::run(RunObserver& observer) {
  Outcome outcome;
  release_free_memory();
  const std::int64_t first = counters_.step;
  const std::int64_t steps = std::max<std::int64_t>(0, options_.iterations - first);
  seconds_.reserve(static_cast<std::size_t>(steps));
  // A checkpoint is made before the evaluation of its step.
  if (first > 0) evaluate_if_due(observer, outcome);
  train_feed_->start(first, steps);
  while (counters_.step < options_.iterations && !signals_.ends()) {
    const bool last = counters_.step + 1 == options_.iterations;
    if (last) {  // on the whole batch or on an epoch's shorter one, which is another program
      for (auto& runner : train_) runner->record(&timeline_.rows);
    }
    const dataset::Batch& batch = train_feed_->next();
    ProgramRunner& runner = runner_for(train_, batch.ids.size());
    if (active_ != nullptr && active_ != &runner) settle(observer);
    active_ = &runner;
    train_step(batch);
    if (last) {
      for (auto& recorded : train_) recorded->record(nullptr);
      settle(observer);
    } else {
      tell(observer);
    }
    if (!checkpoint_if_due(observer)) evaluate_if_due(observer, outcome);
  }
  train_feed_->stop();
  for (auto& runner : train_) runner->drain();
  for (auto& runner : evaluation_) runner->drain();
  outcome.signal = signals_.number();
  outcome.iterations = counters_.step;
  outcome.final_loss = counters_.loss;
  outcome.iteration_time = steady_time(seconds_);
  outcome.rank = rank_report();
  outcome.last_iteration = std::move(timeline_);
  return outcome;
}

void Trainer::train_step(const dataset::Batch& batch) {
  const Seconds start = around_.clock();
  StepSettings settings;
  settings.step = counters_.step;
  settings.learning_rate =
      learning_rate(options_.learning_rate, options_.optimizer.learning_rate, counters_.step, options_.iterations);
  settings.clip_norm = options_.clip_norm;
  settings.signals = around_.signals;
  // An emulated kernel takes its longer time by itself.
  settings.slowdown = computed() ? options_.slowdown : 1.0;
  const Seconds exposed_before = active_->times().exposed();
  active_->train(*train_feed_, batch, settings, counters_.updates);

  ++counters_.step;
  counters_.samples += batch.valid;
  IterationRow& row = untold_.emplace_back();
  row.iteration = counters_.step;
  row.epoch = batch.epoch + 1;
  row.samples = counters_.samples;
  row.learning_rate = settings.learning_rate;
  row.time = around_.clock() - start;
  row.exposed_communication = active_->times().exposed() - exposed_before;
  elapsed_ += row.time;
  seconds_.push_back(row.time.value());
  if (around_.iteration_ended) around_.iteration_ended();
}

void Trainer::settle(RunObserver& observer) {
  if (active_ == nullptr) return;
  const Seconds start = around_.clock();
  active_->finish();
  elapsed_ += around_.clock() - start;
  tell(observer);
}

void Trainer::tell(RunObserver& observer) {
  for (StepResult result; active_->take(result);) {
    IterationRow row = untold_.front();
    untold_.erase(untold_.begin());
    row.loss = computed() ? result.loss : kNotComputed;
    row.gradient_norm = computed() ? result.gradient_norm : kNotComputed;
    row.skipped = result.skipped;
    counters_.loss = row.loss;
    counters_.skips = row.skipped ? counters_.skips + 1 : 0;
    signals_.add(result.signals);
    observer.iteration(row);
    check_skips(row);
  }
}

void Trainer::check_skips(const IterationRow& row) {
  if (counters_.skips < options_.maximum_skips) return;
  active_->finish();
  active_->drain();
  throw comm::SharedError(  // the sums that tell it are those of all ranks
      ExitCode::failed,
      fmt::format(
          "{} iterations in a row had gradients that are not finite, so some or all weights were not updated; the last "
          "is iteration {} (loss {}): lower train.optimizer.lr or set train.clip_norm",
          counters_.skips, row.iteration, std::isfinite(row.loss) ? fmt::to_string(row.loss) : "not finite"));
}

// True where the run ends here: all ranks know the same signals.
bool Trainer::checkpoint_if_due(RunObserver& observer) {
  if (around_.checkpoints == nullptr) return false;
  const std::int64_t every = around_.checkpoints->settings().every;
  const bool last = counters_.step == options_.iterations;
  if (signals_.any() || (every > 0 && (last || counters_.step % every == 0))) {
    settle(observer);
    observer.before_checkpoint();
    watchdog_.operation(kCheckpoint);
    around_.checkpoints->save(counters_, graph_, programs_.train.front().buckets, stages_, watchdog_);
    signals_.user = 0;
  }
  return signals_.ends();
}

void Trainer::evaluate_if_due(RunObserver& observer, Outcome& outcome) {
  const bool due = options_.evaluate_every > 0 && counters_.step % options_.evaluate_every == 0;
  if (evaluation_.empty() || (!due && counters_.step < options_.iterations)) return;
  settle(observer);
  outcome.evaluation = evaluate(counters_.step);
  observer.evaluation(*outcome.evaluation);
}

EvaluationRow Trainer::evaluate(std::int64_t iteration) {
  const std::int64_t samples = around_.source.samples(dataset::Split::test);
  const std::int64_t batch = programs_.evaluation.front().batch;
  const std::int64_t steps = (samples + batch - 1) / batch;
  evaluation_sums_->clear();
  evaluation_feed_->start(0, steps);
  for (std::int64_t step = 0; step < steps; ++step) {
    const dataset::Batch& rows = evaluation_feed_->next();
    runner_for(evaluation_, rows.ids.size())
        .evaluate(*evaluation_feed_, rows, 1.0 / static_cast<double>(samples), *evaluation_sums_);
  }
  evaluation_feed_->stop();
  watchdog_.operation(kEvaluationSums);
  evaluation_sums_->reduce(watchdog_);
  return {iteration, evaluation_sums_->loss(), evaluation_sums_->correct()};
}

RankReport Trainer::rank_report() const {
  RankReport report;
  for (std::size_t s = 0; s < stage_runners_.size(); ++s) {
    const kernels::StageParameters& parameters = stage_runners_[s]->parameters();
    report.weights_bytes += parameters.value_bytes() + parameters.copy_bytes();
    report.gradients_bytes += parameters.gradient_bytes();
    if (by_sample_ != nullptr) report.gradients_bytes += by_sample_->tree(parameters).bytes();
    report.optimizer_bytes += optimizers_[s]->state_bytes() + optimizers_[s]->kept_bytes();
    report.activations_bytes += stage_runners_[s]->activation_bytes();
    report.workspace_bytes += stage_runners_[s]->workspace_bytes();
  }
  for (const auto* runners : {&train_, &evaluation_}) {
    for (const auto& runner : *runners) report.buffers_bytes += runner->buffer_bytes();
  }
  for (const auto& runner : train_) {
    const StepTimes times = runner->times();
    report.busy += times.busy;
    report.exposed_messages += times.exposed_messages;
    report.exposed_reductions += times.exposed_reductions;
    report.exposed_tensor += times.exposed_tensor;
    report.exposed_sums += times.exposed_sums;
    report.reductions_in_flight += times.reductions_in_flight;
  }
  report.idle = elapsed_ - report.busy;
  report.peak_rss_bytes = peak_resident_bytes();
  report.sent_bytes = around_.transport.bytes_sent();
  report.received_bytes = around_.transport.bytes_received();
  return report;
}

std::string Trainer::describe_wait(std::int64_t code, Seconds waited) const {
  const int rank = around_.transport.rank();
  std::string what = fmt::format("rank {}: the sums of an evaluation over all ranks", rank);
  if (code == kCheckpoint) what = fmt::format("rank {}: a checkpoint, that other ranks have written theirs", rank);
  if (code >= 0 && code < kEvaluationSums) {
    const auto id = static_cast<std::size_t>(code >> 32);
    const auto position = static_cast<std::size_t>(code & 0xffffffff);
    const bool evaluating = id >= kFirstEvaluationId;
    const Program& program = evaluating ? programs_.evaluation[id - kFirstEvaluationId] : programs_.train[id];
    what = describe(graph_, program, rank, position) + (evaluating ? " (evaluation)" : "");
  }
  return fmt::format("{}: waited {} (train.stall_limit {})", what, format(waited), format(options_.stall_limit));
}

}  // namespace millrace::runtime
