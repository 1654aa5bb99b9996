// The training loop.
#include "runtime/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "comm/shared_error.h"
#include "program/describe.h"
#include "runtime/learning_rate.h"
#include "runtime/process_memory.h"

namespace millrace::runtime {
namespace {

constexpr int kFirstEvaluationId = 1000;                         // training programs have watch ids below
constexpr std::int64_t kEvaluationSums = std::int64_t{1} << 48;  // watch code of the sums after an evaluation

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

std::vector<const Program*> pointers(const std::vector<Program>& programs) {
  std::vector<const Program*> all;
  for (const Program& program : programs) all.push_back(&program);
  return all;
}

}  // namespace

Trainer::Trainer(const Graph& graph, const Programs& programs, const TrainOptions& options, Surroundings surroundings)
    : graph_(graph),
      programs_(programs),
      options_(options),
      around_(std::move(surroundings)),
      watchdog_(options.stall_limit,
                [this](std::int64_t code, Seconds waited) { around_.stalled(describe_wait(code, waited)); }),
      own_device_(around_.device == nullptr ? kernels::make_device(options.kernels, options.precision) : nullptr),
      device_(around_.device == nullptr ? *own_device_ : *around_.device) {
  const int rank = around_.transport.rank();
  const Program& first = programs.train.front();
  stages_.resize(first.stages.size());
  for (std::size_t s = 0; s < first.stages.size(); ++s) {
    const auto& ranks = first.stages[s].ranks;
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
    stage_runners_.push_back(std::make_unique<StageRunner>(graph, first, static_cast<std::int32_t>(s),
                                                           options.precision, options.seed, device_.storage()));
    StageRunner& runner = *stage_runners_.back();
    for (const auto* list : {&programs.train, &programs.evaluation}) {
      for (const Program& program : *list) runner.require(program, rank);
    }
    runner.compile(device_);
    optimizers_.push_back(std::make_unique<Optimizer>(graph, runner.parameters(), options.optimizer));
    stages_[s] = {&runner, optimizers_.back().get()};
  }
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
                                                      around_.transport, watchdog_, id, around_.clock));
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

Outcome Trainer::run(RunObserver& observer) {
  Outcome outcome;
  std::vector<double> seconds;
  int skips = 0;
  train_feed_->start(0, options_.iterations);
  for (std::int64_t step = 0; step < options_.iterations; ++step) {
    const bool last = step + 1 == options_.iterations;
    if (last) {  // on the whole batch or on an epoch's shorter one, which is another program
      for (auto& runner : train_) runner->record(&timeline_.rows);
    }
    const IterationRow row = train_step(step);
    seconds.push_back(row.time.value());
    outcome.final_loss = row.loss;
    observer.iteration(row);
    skips = row.skipped ? skips + 1 : 0;
    if (skips >= options_.maximum_skips) {
      throw comm::SharedError(  // the sums that tell it are those of all ranks
          ExitCode::failed,
          fmt::format(
              "{} iterations in a row without a finite loss and gradient, the last is iteration {} (loss {}, gradient "
              "norm {}): lower train.optimizer.lr or set train.clip_norm",
              skips, row.iteration, row.loss, row.gradient_norm));
    }
    const bool due = options_.evaluate_every > 0 && (step + 1) % options_.evaluate_every == 0;
    if (!evaluation_.empty() && (due || last)) {
      outcome.evaluation = evaluate(step + 1);
      observer.evaluation(outcome.evaluation);
    }
  }
  train_feed_->stop();
  for (auto& runner : train_) runner->drain();
  for (auto& runner : evaluation_) runner->drain();
  outcome.iteration_time = steady_time(seconds);
  outcome.rank = rank_report();
  outcome.last_iteration = std::move(timeline_);
  return outcome;
}

IterationRow Trainer::train_step(std::int64_t step) {
  const Seconds start = around_.clock();
  const dataset::Batch& batch = train_feed_->next();
  ProgramRunner& runner = runner_for(train_, batch.ids.size());
  StepSettings settings;
  settings.step = step;
  settings.learning_rate =
      learning_rate(options_.learning_rate, options_.optimizer.learning_rate, step, options_.iterations);
  settings.clip_norm = options_.clip_norm;
  // An emulated kernel takes its longer time by itself.
  settings.slowdown = device_.storage() == kernels::Storage::real ? options_.slowdown : 1.0;
  const Seconds busy_before = runner.times().busy;
  const StepResult result = runner.train(*train_feed_, batch, settings, updates_);

  samples_ += batch.valid;
  IterationRow row;
  row.iteration = step + 1;
  row.epoch = batch.epoch + 1;
  row.samples = samples_;
  const bool computed = device_.storage() == kernels::Storage::real;
  row.loss = computed ? result.loss : kNotComputed;
  row.gradient_norm = computed ? result.gradient_norm : kNotComputed;
  row.learning_rate = settings.learning_rate;
  row.time = around_.clock() - start;
  row.exposed_communication = row.time - (runner.times().busy - busy_before);
  row.skipped = result.skipped;
  elapsed_ += row.time;
  if (around_.iteration_ended) around_.iteration_ended();
  return row;
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
    report.weights_bytes += stage_runners_[s]->parameters().value_bytes();
    report.gradients_bytes += stage_runners_[s]->parameters().gradient_bytes();
    report.optimizer_bytes += optimizers_[s]->state_bytes();
    report.activations_bytes += stage_runners_[s]->activation_bytes();
    report.workspace_bytes += stage_runners_[s]->workspace_bytes();
  }
  for (const auto* runners : {&train_, &evaluation_}) {
    for (const auto& runner : *runners) report.buffers_bytes += runner->buffer_bytes();
  }
  for (const auto& runner : train_) report.busy += runner->times().busy;
  report.idle = elapsed_ - report.busy;
  report.peak_rss_bytes = peak_resident_bytes();
  report.sent_bytes = around_.transport.bytes_sent();
  report.received_bytes = around_.transport.bytes_received();
  return report;
}

std::string Trainer::describe_wait(std::int64_t code, Seconds waited) const {
  const int rank = around_.transport.rank();
  std::string what = fmt::format("rank {}: the sums of an evaluation over all ranks", rank);
  if (code >= 0 && code != kEvaluationSums) {
    const auto id = static_cast<std::size_t>(code >> 32);
    const auto position = static_cast<std::size_t>(code & 0xffffffff);
    const bool evaluating = id >= kFirstEvaluationId;
    const Program& program = evaluating ? programs_.evaluation[id - kFirstEvaluationId] : programs_.train[id];
    what = describe(graph_, program, rank, position) + (evaluating ? " (evaluation)" : "");
  }
  return fmt::format("{}: waited {} (train.stall_limit {})", what, format(waited), format(options_.stall_limit));
}

}  // namespace millrace::runtime
