// Writes the tables of a run and keeps them on the disk while it goes on.
#include "record/results_file.h"

#include <algorithm>
#include <chrono>

#include "base/errors.h"
#include "record/columns.h"
#include "storage/published_file.h"

namespace millrace::record {
namespace {

constexpr std::chrono::milliseconds kFlushEvery{500};  // rows reach the disk within a second (INTERFACES 6)

void set(storage::Object& object, const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) {
    std::visit([&](const auto& value) { object.set(fact.name, value); }, fact.value);
  }
}

std::uint64_t bytes(std::int64_t count) { return static_cast<std::uint64_t>(count); }

std::uint64_t at_least_one(std::int64_t rows) { return rows < 1 ? 1 : static_cast<std::uint64_t>(rows); }

void describe(storage::File& file, const RunContext& context) {
  set(file, context.root);
  file.set("status", "running");
  file.make_text("config", context.config, {"1", "effective experiment, YAML"});
  file.make_text("plan", context.plan, {"1", "plan, YAML"});
  file.make_text("cluster", context.cluster, {"1", "devices and links that the plan was made for, YAML"});
}

void build(storage::File& file, const RunContext& context) {
  describe(file, context);
  file.make_table("iterations", iteration_columns(), at_least_one(context.iterations), "one row for each iteration");
  file.make_table("evaluation", evaluation_columns(), at_least_one(context.evaluations), "one row for each evaluation");
}

// Overwriting replaces results, never something else of that name.
void require_results(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return;
  bool results = false;
  try {
    results = storage::File::open(file).contains("iterations");
  } catch (const Error&) {
    // No HDF5 file.
  }
  if (!results) throw InvalidInput(file.string() + " exists and holds no results of a run; choose another output");
}

// Rows of iterations up to `last`, which come first.
void cut_table(storage::File& file, const char* name, std::int64_t last, std::uint64_t capacity) {
  {
    storage::Table table = file.table(name);
    const std::vector<std::int64_t> iterations = table.column_integers("iteration");
    const auto later = std::find_if(iterations.begin(), iterations.end(), [&](std::int64_t i) { return i > last; });
    table.keep_rows(static_cast<std::uint64_t>(later - iterations.begin()));
  }
  storage::resize_table(file, name, capacity);  // the room tells how many rows are planned
}

// A former run's file as the file of one that stands after iteration `last`. The evaluation of that iteration is made
// anew, since a checkpoint comes before it.
void reopen(storage::File& file, const RunContext& context, std::int64_t last) {
  for (const char* name :
       {"config", "plan", "cluster", "ranks", "instructions", "prediction", "stage_times", "costs", "summary"}) {
    if (file.contains(name)) file.remove(name);
  }
  describe(file, context);
  cut_table(file, "iterations", last, at_least_one(context.iterations));
  cut_table(file, "evaluation", last - 1, at_least_one(context.evaluations));
}

storage::Existing existing(const ResultsOptions& options) {
  return options.overwrite ? storage::Existing::replace : storage::Existing::refuse;
}

}  // namespace

ResultsFile::ResultsFile(const std::filesystem::path& file, const RunContext& context, const ResultsOptions& options)
    : lock_(file, options.overwrite_lock) {
  if (options.overwrite || options.resume_after) require_results(file);
  if (options.resume_after && std::filesystem::exists(file)) {
    storage::edit_published(lock_, [&](storage::File& copy) { reopen(copy, context, *options.resume_after); });
    file_ = storage::File::modify(lock_);
  } else {
    file_ = storage::make_published(lock_, existing(options), [&](storage::File& made) { build(made, context); });
  }
  iterations_ = file_->table("iterations");
  evaluations_ = file_->table("evaluation");
  flusher_ = std::thread([this] { keep_flushing(); });
}

ResultsFile::~ResultsFile() { stop(); }

void ResultsFile::add(const IterationRow& row, std::int64_t samples_of_row) {
  const std::scoped_lock lock(mutex_);
  rethrow_failure();
  const double throughput = row.time.value() > 0 ? static_cast<double>(samples_of_row) / row.time.value() : 0.0;
  iterations_->append({row.iteration, row.epoch, row.samples, row.loss, row.gradient_norm, row.learning_rate,
                       row.time.value(), throughput, row.exposed_communication.value(),
                       std::int64_t{row.skipped ? 1 : 0}});
  added();
}

void ResultsFile::add(const EvaluationRow& row) {
  const std::scoped_lock lock(mutex_);
  rethrow_failure();
  evaluations_->append({row.iteration, row.loss, row.accuracy});
  added();
}

void ResultsFile::add(const std::vector<RankRow>& ranks) {
  const std::scoped_lock lock(mutex_);
  rethrow_failure();
  flush();  // first: the rows have their room, these tables may find the disk full
  storage::Table table = file_->make_table("ranks", rank_columns(), ranks.size(), "one row for each rank");
  for (const RankRow& row : ranks) {
    const RankReport& r = row.report;
    table.append({row.rank,
                  row.host,
                  row.device,
                  row.pipeline,
                  row.stages,
                  row.threads,
                  bytes(r.weights_bytes),
                  bytes(r.gradients_bytes),
                  bytes(r.optimizer_bytes),
                  bytes(r.activations_bytes),
                  bytes(r.workspace_bytes),
                  bytes(r.buffers_bytes),
                  bytes(r.peak_bytes()),
                  bytes(r.peak_rss_bytes),
                  r.busy.value(),
                  r.idle.value(),
                  bytes(r.sent_bytes),
                  bytes(r.received_bytes),
                  bytes(row.predicted_peak_bytes),
                  r.exposed_messages.value(),
                  r.exposed_reductions.value(),
                  r.exposed_tensor.value(),
                  r.exposed_sums.value(),
                  r.reductions_in_flight.value()});
  }
  table.flush();
}

void ResultsFile::add(const std::vector<TimelineRow>& measured, std::int64_t iteration,
                      const std::vector<double>& predicted_s) {
  const std::scoped_lock lock(mutex_);
  storage::Table table =
      file_->make_table("instructions", instruction_columns(), at_least_one(static_cast<std::int64_t>(measured.size())),
                        "when each instruction of one iteration ran, in the clock of its rank");
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const TimelineRow& row = measured[i];
    table.append({std::int64_t{row.rank}, iteration, std::string(name(row.instruction.kind)),
                  std::int64_t{row.instruction.stage}, std::int64_t{row.instruction.micro_batch}, row.start.value(),
                  row.end.value(), i < predicted_s.size() ? predicted_s[i] : -1.0});
  }
  table.flush();
}

void ResultsFile::add(const std::string& name, const DataTable& table, const std::string& description) {
  const std::scoped_lock lock(mutex_);
  write_table(*file_, name, table, description);
}

void ResultsFile::add_group(const std::string& name, const std::vector<Fact>& facts) {
  const std::scoped_lock lock(mutex_);
  storage::Group group = file_->make_group(name);
  set(group, facts);
}

void ResultsFile::keep() {
  const std::scoped_lock lock(mutex_);
  rethrow_failure();
  flush();
}

void ResultsFile::added() {
  waiting_rows_ = true;
  wake_.notify_one();
}

void ResultsFile::flush() {
  iterations_->flush();
  evaluations_->flush();
  file_->flush();
  waiting_rows_ = false;
}

void ResultsFile::keep_flushing() {
  std::unique_lock lock(mutex_);
  try {
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || waiting_rows_; });
      // Rows gather for a while, so that fast iterations do not pay for a flush each.
      if (wake_.wait_for(lock, kFlushEvery, [this] { return stop_; })) return;
      flush();
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void ResultsFile::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (flusher_.joinable()) flusher_.join();
}

void ResultsFile::rethrow_failure() {
  if (failure_) std::rethrow_exception(failure_);
}

void ResultsFile::close(const std::string& status) {
  stop();
  rethrow_failure();
  iterations_->flush();
  evaluations_->flush();
  file_->set("status", status);
  iterations_.reset();
  evaluations_.reset();
  file_->close();
  file_.reset();
}

}  // namespace millrace::record
