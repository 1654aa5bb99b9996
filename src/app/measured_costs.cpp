// Measures or reads profiles and holds them against the session.
#include "app/measured_costs.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/job_speed.h"
#include "app/planning.h"
#include "app/profile_text.h"
#include "base/count.h"
#include "base/errors.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/local.h"
#include "cost/analytic.h"
#include "cost/measured.h"
#include "probe/operator_profile.h"
#include "probe/processor.h"
#include "program/factored_gradients.h"
#include "record/profile_file.h"
#include "runtime/optimizer.h"
#include "runtime/step_sums.h"
#include "runtime/trainer.h"
#include "schedules/registry.h"

namespace millrace::app {
namespace {

constexpr double kFlopsOfRun = 50e9;         // half a second of one core
constexpr Seconds kTimeOfSizeAtStart{0.05};  // where a command measures before it begins,
constexpr Seconds kTimeOfCut{0.2};           // and again a few sizes of one plan

double flops_per_row(const Graph& graph) {
  double flops = 0;
  for (OpId op = 0; op < graph.size(); ++op) {
    const Operator& node = graph.op(op);
    const OpFlops each = node.schema->flops(node.attributes, graph.shapes(op));
    flops += each.forward + each.backward_input + each.backward_weight;
  }
  return flops;
}

// What an update instruction does to one tensor: the squares, which say whether it is finite, and the step; then its
// gradient is nothing. A rate of zero keeps the weights while they are measured.
probe::MakeStep optimizer_step(const Session& session) {
  return [&session](kernels::StageParameters& parameters) -> probe::Step {
    const auto optimizer =
        std::make_shared<runtime::Optimizer>(session.graph, parameters, session.experiment.train.optimizer);
    return [optimizer, &parameters](std::size_t position) {
      volatile double squares =
          runtime::gradient_squares(parameters, position, {0, parameters.range_elements(position, 1)});
      static_cast<void>(squares);
      optimizer->update(position, 1, {.learning_rate = 0});
      parameters.discard_gradients(position, 1);
    };
  };
}

bool is_local(const Session& session) { return session.cluster.kind() == cluster::Kind::local; }

// Whether the ranks that the session plans for are those that run.
bool has_ranks(const Session& session, const comm::World& world) {
  return is_local(session) && world.size() > 1 && world.size() == session.cluster.size();
}

// \param threads  of a rank; 0: of no interest.
cost::Profile read_kept(const Session& session, std::int64_t threads) {
  const std::string file = session.experiment.costs.file->string();
  cost::Profile profile = record::read_profile(file);
  cost::ProfileUse use;
  use.precision = precision_name(session.experiment);
  use.kernels = runtime::make_device(session.experiment.train)->name();
  if (is_local(session)) {
    use.cpu = probe::processor_name();
    use.threads = threads;
  }
  if (const std::string why = cost::why_not_usable(profile, session.graph, use); !why.empty()) {
    const int ranks = session.cluster.size();
    throw InvalidInput(fmt::format("{}: {}: {}; measure again: {}millrace profile EXP.yaml -o {} --overwrite",
                                   cited(session.experiment, "costs"), file, why,
                                   is_local(session) && ranks > 1 ? fmt::format("mpirun -n {} ", ranks) : "", file));
  }
  return profile;
}

// Speeds and links of the profile's job become those of the cluster.
void take_job(Session& session, const cost::MeasuredJob& job) {
  if (!is_local(session)) return;
  const auto ranks = static_cast<std::size_t>(session.cluster.size());
  const std::map<int, double>& slowdown = session.experiment.slowdown;
  std::vector<double> speeds = job.speeds;
  // One process measured for all: but for the slowdown its ranks are as fast as each other.
  if (speeds.empty() && !slowdown.empty()) speeds.assign(ranks, 1.0);
  if (speeds.size() != ranks) return;
  for (const auto& [rank, factor] : slowdown) speeds[static_cast<std::size_t>(rank)] /= factor;
  session.cluster = cluster::with_measurements(session.cluster, speeds, job.within, job.between);
  session.measured_speeds = true;
}

std::string measured_line(const Session& session) {
  const cost::Profile& profile = *session.profile;
  std::string line =
      fmt::format("costs: {} at {}, {}", counted(static_cast<std::int64_t>(profile.operators.size()), "operator"),
                  counted(static_cast<std::int64_t>(profile.sizes.size()), "micro-batch size"),
                  session.experiment.costs.file ? "read from " + session.experiment.costs.file->string() : "measured");
  if (session.measured_speeds) {
    std::vector<std::string> speeds;
    for (const cluster::Device& device : session.cluster.devices())
      speeds.push_back(fmt::format("{:.2f}", device.speed));
    line += fmt::format("; speeds of the ranks {}", join(speeds));
  }
  if (const auto& link = profile.job.within) {
    line += fmt::format("; link {:.2f} GB/s, {}", link->bandwidth.value() / 1e9, format(link->latency));
  }
  return line + fmt::format("; in {}", format(Seconds(session.measuring_s)));
}

// On all ranks side by side.
cost::Profile measure_operators(const Session& session, std::vector<std::int64_t> rows, Seconds time_of_size,
                                probe::Stages stages, const comm::World& world) {
  const auto device = device_for_measuring(session);
  probe::ProfileOptions options;
  options.rows = std::move(rows);
  options.precision = session.experiment.train.precision;
  options.seed = session.experiment.seed;
  options.stages = std::move(stages);
  options.time_of_size = time_of_size;
  if (world.size() > 1) options.together = [&world] { world.barrier(); };
  cost::Profile profile = probe::profile_operators(session.graph, *device, options, optimizer_step(session));
  profile.cpu = probe::processor_name();
  profile.threads = threads_of(session);
  return profile;
}

cost::Profile those_of_root(const cost::Profile& profile, const comm::World& world) {
  return profile_from_json(nlohmann::json::parse(world.broadcast(profile_json(profile).dump())));
}

// As programs will have it (lowering_options), where no candidate forbids it.
cost::FactoredLayers factored_in_training(const Session& session) {
  const Experiment& experiment = session.experiment;
  const PlanSection& plan = experiment.plan;
  const bool parts = experiment.train.shard_optimizer || plan.tensor_parallel > 1;
  const bool flush = std::all_of(plan.schedules.begin(), plan.schedules.end(), [](const Choice& choice) {
    return (schedules::by_name(choice.name).capabilities & schedules::kSynchronous) != 0;
  });
  if (hiding_of(experiment) != Hiding::update || parts || !flush || plan.bucket_sizes.empty()) return {};
  return {factored_layers(session.graph, experiment.data.batch, plan.bucket_sizes.front()), experiment.data.batch};
}

}  // namespace

std::unique_ptr<cost::CostModel> make_costs(const Session& session) { return make_costs(session, session.cluster); }

std::unique_ptr<cost::CostModel> make_costs(const Session& session, const cluster::Cluster& cluster) {
  if (session.profile) {
    return std::make_unique<cost::MeasuredCost>(*session.profile, cluster, factored_in_training(session));
  }
  if (session.experiment.costs.measured) {
    throw InvalidInput(fmt::format(
        "{}: measured: this command measures nothing; give it a profile: millrace profile EXP.yaml -o p.h5, "
        "then costs: p.h5",
        cited(session.experiment, "costs")));
  }
  return std::make_unique<cost::AnalyticCost>(session.graph, cluster, precision_name(session.experiment));
}

std::vector<std::int64_t> rows_to_measure(const Session& session) {
  const PlanSection& plan = session.experiment.plan;
  const std::int64_t batch = session.experiment.data.batch;
  std::int64_t parts = plan.pipelines.value_or(1);
  if (!plan.micro_batches.empty()) parts *= *std::min_element(plan.micro_batches.begin(), plan.micro_batches.end());
  std::int64_t longest = plan.file ? batch : (batch + parts - 1) / parts;
  if (plan.micro_batch_size && !plan.file) longest = *plan.micro_batch_size;
  constexpr std::int64_t kLeast = 8;
  const double affordable = kFlopsOfRun / std::max(1.0, flops_per_row(session.graph));
  if (affordable < static_cast<double>(longest)) {
    longest = std::min(longest, std::max(kLeast, static_cast<std::int64_t>(affordable)));
  }
  std::vector<std::int64_t> rows;
  for (std::int64_t size = 1; size < longest; size *= 2) rows.push_back(size);
  rows.push_back(longest);
  return rows;
}

cost::Profile measure_profile(const Session& session, const std::vector<std::int64_t>& rows, Seconds time_of_size,
                              const comm::World& world) {
  world.on_root_then_all([&] {
    if (const std::string why_not = why_not_trainable(session.graph); !why_not.empty()) {
      throw InvalidInput(
          fmt::format("model {}: {}: there is nothing to measure", session.experiment.model.name, why_not));
    }
    return std::string();
  });
  cost::Profile profile = measure_operators(session, rows, time_of_size, {}, world);
  if (has_ranks(session, world)) profile.job = measure_job(session, world);
  return those_of_root(profile, world);
}

void measure_as_cut(Session& session, const Program& program, const comm::World& world) {
  if (!session.experiment.costs.measured) return;
  probe::Stages stages;
  std::set<std::int64_t> sizes;
  for (const ProgramStage& stage : program.stages) {
    if (stage.ref.pipeline == 0) stages.push_back(stage.ops);
    for (const std::vector<RowInterval>& micro_batch : stage.rows) {
      for (const RowInterval rows : micro_batch) sizes.insert(rows.size());
    }
  }
  if (stages.size() < 2) return;  // nothing crosses
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t longest = rows_to_measure(session).back();
  sizes.erase(0);
  sizes.erase(sizes.upper_bound(longest), sizes.end());
  if (sizes.empty()) sizes.insert(longest);
  const std::size_t count = stages.size();
  cost::Profile profile =
      measure_operators(session, {sizes.begin(), sizes.end()}, kTimeOfCut, std::move(stages), world);
  profile.job = session.profile->job;
  session.profile = std::make_shared<cost::Profile>(those_of_root(profile, world));
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  session.measuring_s += took;
  if (world.root()) {
    log::notice(fmt::format("costs: measured again, cut into the plan's {}; in {}",
                            counted(static_cast<std::int64_t>(count), "stage"), format(Seconds(took))));
  }
}

void take_measured_costs(Session& session, const Arguments& arguments, const comm::World& world) {
  const CostsSection& costs = session.experiment.costs;
  if (arguments.command == "profile" || (!costs.measured && !costs.file)) return;
  const auto start = std::chrono::steady_clock::now();
  cost::Profile profile;
  if (costs.file) {
    profile = profile_from_json(nlohmann::json::parse(
        world.on_root_then_all([&] { return profile_json(read_kept(session, threads_of(session))).dump(); })));
    if (has_ranks(session, world)) profile.job = measure_job(session, world);
  } else {
    world.on_root_then_all([&] {
      if (session.cluster.emulated()) {
        throw InvalidInput(
            fmt::format("{}: measured: the ranks of an emulated cluster compute nothing; give it a profile: millrace "
                        "profile EXP.yaml -o p.h5, then costs: p.h5",
                        cited(session.experiment, "costs")));
      }
      return std::string();
    });
    profile = measure_profile(session, rows_to_measure(session), kTimeOfSizeAtStart, world);
  }
  take_job(session, profile.job);
  session.profile = std::make_shared<cost::Profile>(std::move(profile));
  session.measuring_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (world.root()) log::notice(measured_line(session));
}

void take_kept_costs(Session& session) {
  if (!session.experiment.costs.file) return;
  cost::Profile profile = read_kept(session, 0);  // ranks that run elsewhere have threads of their own
  take_job(session, profile.job);
  session.profile = std::make_shared<cost::Profile>(std::move(profile));
}

}  // namespace millrace::app
