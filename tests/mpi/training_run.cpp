// Plans, programs and trainers for tests with ranks.
#include "tests/mpi/training_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/random.h"
#include "graph/data_range.h"
#include "plan/plan_text.h"
#include "plan/validate.h"
#include "program/stage_dag.h"
#include "program/verifier.h"
#include "runtime/forecast.h"
#include "runtime/supported.h"
#include "runtime/trainer.h"
#include "schedules/placement.h"
#include "schedules/registry.h"

namespace millrace::testing {
namespace {

dataset::SampleFormat format_of(const Graph& graph) {
  const Tensor& input = graph.tensor(graph.inputs().front());
  const Tensor& label = graph.tensor(graph.labels().front());
  dataset::SampleFormat format;
  format.kind = input.shape.element == ElementType::real ? dataset::InputKind::real : dataset::InputKind::index;
  format.shape = input.shape.dims;
  format.labels_per_sample = label.shape.elements_per_sample();
  format.classes = label_classes(graph);
  return format;
}

std::uint64_t sample_key(dataset::Split split, std::int64_t id) {
  return static_cast<std::uint64_t>(id) + (split == dataset::Split::test ? 1'000'000U : 0U);
}

class Rows final : public runtime::RunObserver {
 public:
  explicit Rows(TrainingRun& run) : run_(run) {}
  void iteration(const IterationRow& row) override { run_.rows.push_back(row); }
  void evaluation(const EvaluationRow& row) override { run_.evaluations.push_back(row); }

 private:
  TrainingRun& run_;
};

std::vector<Program> programs(const Graph& graph, const Plan& plan, std::vector<std::int64_t> batches, bool training,
                              const RunSettings& settings, std::int64_t largest_tag) {
  std::vector<Program> made;
  LoweringOptions options = settings.lowering;
  options.tag_limit = static_cast<std::int32_t>(std::min<std::int64_t>(largest_tag, options.tag_limit));
  options.largest_batch = settings.batch;
  const StageDag dag = make_stage_dag(graph, plan);
  for (const std::int64_t batch : batches) {
    made.push_back(training ? lower(graph, plan, schedules::compute_order(plan, dag), batch, options)
                            : lower_evaluation(graph, plan, batch, options));
    if (training && settings.edit) settings.edit(made.back());
    require_verified(graph, made.back(), options.tag_limit);
    runtime::require_supported(made.back(), settings.train.precision, settings.train.clip_norm);
  }
  return made;
}

std::vector<std::int64_t> batch_sizes(std::int64_t samples, std::int64_t batch, dataset::Tail tail) {
  std::vector<std::int64_t> sizes{batch};
  if (tail == dataset::Tail::uneven && samples % batch != 0) sizes.push_back(samples % batch);
  return sizes;
}

OpList recomputed(const OpList& ops, Recompute which, bool last) {
  if (which == Recompute::all || (which == Recompute::all_but_last && !last)) return ops;
  std::vector<OpId> chosen;
  if (which == Recompute::chosen) {
    std::copy_if(ops.begin(), ops.end(), std::back_inserter(chosen), [](OpId op) { return op % 3 != 1; });
  }
  return chosen;
}

runtime::CheckpointSettings checkpoint_settings(const Graph& graph, const Plan& plan, const RunSettings& settings) {
  runtime::CheckpointSettings made;
  made.root = settings.checkpoints;
  made.every = settings.train.checkpoint_every;
  made.keep = settings.train.checkpoint_keep;
  made.graph_digest = graph.digest();
  made.plan = plan::to_yaml(plan, graph);
  return made;
}

runtime::FoundCheckpoint newest(const std::filesystem::path& root) {
  auto found =
      runtime::newest_checkpoint(root, [](const std::string& why) { std::fprintf(stderr, "%s\n", why.c_str()); });
  if (!found) throw std::runtime_error("no checkpoint in " + root.string());
  return *found;
}

}  // namespace

Plan make_plan(const Graph& graph, const Grid& grid) {
  Plan plan;
  plan.model = graph.name();
  plan.graph_digest = graph.digest();
  plan.schedule = grid.schedule;
  plan.bucket_size = 4_KiB;  // several buckets even in small networks
  const schedules::Placement placement = schedules::by_name(grid.schedule).placement;
  const bool two = placement == schedules::Placement::in_turn || placement == schedules::Placement::vee;
  const int stages = two ? 2 * grid.stages : grid.stages;
  const auto ops = static_cast<int>(graph.size());
  for (int p = 0; p < grid.pipelines; ++p) {
    Pipeline pipeline;
    pipeline.share = 1.0 / grid.pipelines;
    pipeline.micro_batches = grid.micro_batches;
    std::vector<schedules::Seat> seats;
    for (int s = 0; s < grid.stages; ++s) seats.push_back({{p * grid.stages + s}, {1.0}});
    for (int s = 0; s < stages; ++s) {
      Stage stage;
      stage.ops = OpList::range(ops * s / stages, ops * (s + 1) / stages);
      stage.recompute = recomputed(stage.ops, grid.recompute, s + 1 == stages);
      pipeline.stages.push_back(std::move(stage));
    }
    for (Pipeline& placed : schedules::place(pipeline, seats, placement)) plan.pipelines.push_back(std::move(placed));
  }
  return plan;
}

TrainingRun train(const Graph& graph, const Plan& plan, const dataset::Source& source, const RunSettings& settings,
                  MPI_Comm communicator) {
  plan::require_valid(plan, graph, {.several_stages = true}, "test plan");
  comm::NodeTransport transport(communicator, settings.transport);
  dataset::SampleOrder order(settings.train.seed, source.samples(dataset::Split::train), settings.batch, settings.tail);
  runtime::Programs made;
  made.train = programs(graph, plan, batch_sizes(source.samples(dataset::Split::train), settings.batch, settings.tail),
                        true, settings, transport.largest_tag());
  if (settings.evaluate) {
    made.evaluation =
        programs(graph, plan, batch_sizes(source.samples(dataset::Split::test), settings.batch, dataset::Tail::uneven),
                 false, settings, transport.largest_tag());
  }
  const auto stalled = [](const std::string& text) {
    std::fprintf(stderr, "%s\n", text.c_str());
    MPI_Abort(MPI_COMM_WORLD, 4);
  };
  TrainingRun run;
  if (settings.forecast) run.forecast = runtime::forecast(graph, made, settings.train, transport.rank()).rank;
  std::optional<runtime::Checkpoints> checkpoints;
  if (!settings.checkpoints.empty()) checkpoints.emplace(checkpoint_settings(graph, plan, settings), transport);
  runtime::Surroundings around{transport, source, order, stalled, checkpoints ? &*checkpoints : nullptr};
  around.iteration_ended = settings.iteration_ended;
  runtime::Trainer trainer(graph, made, settings.train, around);
  if (settings.resume) trainer.resume(newest(settings.checkpoints));
  run.rows.reserve(static_cast<std::size_t>(settings.train.iterations));  // a caller may count allocations
  Rows rows(run);
  run.outcome = trainer.run(rows);
  run.values = trainer.gather_values();
  return run;
}

SmallSource::SmallSource(const Graph& graph, std::int64_t train, std::int64_t test)
    : Source(format_of(graph)), train_(train), test_(test) {}

void SmallSource::read_inputs(dataset::Split split, std::span<const std::int64_t> ids, float* destination) const {
  for (const std::int64_t id : ids) {
    const Random random(11, "input", 0, sample_key(split, id));
    for (std::int64_t i = 0; i < format().input_size(); ++i) {
      *destination++ = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
    }
  }
}

void SmallSource::read_inputs(dataset::Split split, std::span<const std::int64_t> ids,
                              std::int32_t* destination) const {
  for (const std::int64_t id : ids) {
    const Random random(12, "token", 0, sample_key(split, id));
    for (std::int64_t i = 0; i < format().input_size(); ++i) {
      *destination++ = static_cast<std::int32_t>(
          random.below(static_cast<std::uint64_t>(format().classes), static_cast<std::uint64_t>(i)));
    }
  }
}

void SmallSource::read_labels(dataset::Split split, std::span<const std::int64_t> ids,
                              std::int32_t* destination) const {
  for (const std::int64_t id : ids) {
    const Random random(13, "label", 0, sample_key(split, id));
    for (std::int64_t i = 0; i < format().labels_per_sample; ++i) {
      *destination++ = static_cast<std::int32_t>(
          random.below(static_cast<std::uint64_t>(format().classes), static_cast<std::uint64_t>(i)));
    }
  }
}

double row_difference(const TrainingRun& a, const TrainingRun& b) {
  if (a.rows.size() != b.rows.size()) return INFINITY;
  double worst = 0;
  const auto take = [&worst](double difference) {  // what is no number is no small one
    if (!(difference <= worst)) worst = std::isnan(difference) ? INFINITY : difference;
  };
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    take(std::abs(a.rows[i].loss - b.rows[i].loss) / std::abs(b.rows[i].loss));
    take(std::abs(a.rows[i].gradient_norm - b.rows[i].gradient_norm) / b.rows[i].gradient_norm);
  }
  return worst;
}

double value_difference(const TrainingRun& a, const TrainingRun& b) {
  if (a.values.size() != b.values.size()) return INFINITY;
  double difference = 0, size = 0;
  for (std::size_t t = 0; t < a.values.size(); ++t) {
    if (a.values[t].size() != b.values[t].size()) return INFINITY;
    for (std::size_t i = 0; i < a.values[t].size(); ++i) {
      difference += (a.values[t][i] - b.values[t][i]) * (a.values[t][i] - b.values[t][i]);
      size += b.values[t][i] * b.values[t][i];
    }
  }
  return std::sqrt(difference / size);
}

void patient_barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace millrace::testing
