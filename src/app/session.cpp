// Opens experiments: file, graph, machine and data.
#include "app/session.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/kernel_variants.h"
#include "app/measured_costs.h"
#include "app/output_file.h"
#include "app/tensor_parallel.h"
#include "base/count.h"
#include "base/errors.h"
#include "base/log.h"
#include "cluster/launcher.h"
#include "cluster/local.h"
#include "dataset/empty_source.h"
#include "dataset/hdf5_source.h"
#include "dataset/synthetic_source.h"
#include "graph/data_range.h"
#include "import/import.h"
#include "models/registry.h"

namespace millrace::app {
namespace {

std::string cores_text(const std::vector<int>& cores) { return fmt::format("{}", fmt::join(cores, ",")); }

struct Share {
  int threads = 1;
  double speed = 1.0;  // below 1 where ranks take turns on a core
};

// Ranks of one host with the same affinity mask share its cores (INTERFACES 9). A command that runs alone plans for
// `ranks` processes of this host.
Share share_here(const comm::World& world, int ranks) {
  const std::vector<int> cores = cluster::affinity_cores();
  const std::string own = world.host() + ":" + cores_text(cores);
  const std::vector<std::string> masks = world.gather_to_all(own);
  auto sharing = static_cast<int>(std::count(masks.begin(), masks.end(), own));
  if (world.size() == 1) sharing = ranks;
  // A setting that is wrong on all ranks is told once; one that is wrong on a single rank by that rank.
  world.on_root_then_all([&] {
    cluster::threads_of_rank(cluster::process_environment(), cores.size(), sharing);
    return std::string();
  });
  Share share;
  share.threads = cluster::threads_of_rank(cluster::process_environment(), cores.size(), sharing);
  share.speed = std::min(1.0, static_cast<double>(cores.size()) / (sharing * share.threads));
  return share;
}

// Sample i of text is a window of as many tokens as the graph reads.
std::unique_ptr<dataset::Source> open_source(const Experiment& experiment, const Graph& graph) {
  const Tensor& input = graph.tensor(graph.inputs().front());
  const bool tokens = input.shape.element == ElementType::index;
  if (experiment.data.file) {
    const auto sequence = tokens ? std::optional(input.shape.elements_per_sample()) : std::nullopt;
    return std::make_unique<dataset::Hdf5Source>(*experiment.data.file, sequence);
  }
  dataset::SampleFormat format;
  format.kind = tokens ? dataset::InputKind::index : dataset::InputKind::real;
  format.shape = input.shape.dims;
  format.labels_per_sample = graph.tensor(graph.labels().front()).shape.elements_per_sample();
  format.classes = label_classes(graph);
  return std::make_unique<dataset::SyntheticSource>(experiment.seed, format);
}

void settle_iterations(Experiment& experiment, const dataset::Source& source) {
  if (!experiment.epochs) return;
  const dataset::SampleOrder order(experiment.seed, source.samples(dataset::Split::train), experiment.data.batch,
                                   experiment.data.tail);
  experiment.train.iterations = *experiment.epochs * order.steps_per_epoch();
}

// Nothing is computed, so graphs that cannot be trained run too; an epoch is whole batches.
std::unique_ptr<dataset::Source> empty_source(const Experiment& experiment) {
  constexpr std::int64_t kEpoch = 50'000;  // that of synthetic data
  const std::int64_t batch = experiment.data.batch;
  return std::make_unique<dataset::EmptySource>((kEpoch + batch - 1) / batch * batch);
}

std::unique_ptr<dataset::Source> emulated_data(Experiment& experiment) {
  auto source = empty_source(experiment);
  settle_iterations(experiment, *source);
  return source;
}

void check_source(const Experiment& experiment, const Graph& graph, const dataset::Source& source) {
  const dataset::SampleFormat& format = source.format();
  const Tensor& input = graph.tensor(graph.inputs().front());
  const std::string file = experiment.data.file ? experiment.data.file->string() : "synthetic data";
  if (format.shape != input.shape.dims) {
    throw InvalidInput(fmt::format("data.source: {} has samples of shape {}, model {} reads {}", file,
                                   millrace::format(format.shape), experiment.model.name,
                                   millrace::format(input.shape.dims)));
  }
  if (format.classes > label_classes(graph)) {
    throw InvalidInput(
        fmt::format("data.source: {} has {} classes, model {} tells {} apart; set model.options.{} to {}", file,
                    format.classes, experiment.model.name, label_classes(graph),
                    format.kind == dataset::InputKind::index ? "vocabulary" : "classes", format.classes));
  }
  // The order knows which batches the samples allow.
  dataset::SampleOrder(experiment.seed, source.samples(dataset::Split::train), experiment.data.batch,
                       experiment.data.tail);
}

// The machine that the experiment names; none: the ranks of the job.
std::optional<cluster::Cluster> named_cluster(const Experiment& experiment, const Graph& graph) {
  if (experiment.cluster.carried) return planner::carried_cluster(graph, *experiment.cluster.carried);
  return experiment.cluster.described;
}

// A job has one rank for each device of the cluster that it names (REPORTS P15); other commands take the cluster's
// size.
void check_size(const cluster::Cluster& cluster, const Arguments& arguments, const comm::World& world) {
  const bool trains = arguments.command == "run" || arguments.command == "verify";
  if (trains && cluster.size() != world.size()) {
    throw InvalidInput(
        fmt::format("cluster '{}' has {} devices, the job has {} ranks: start one rank a device, or use "
                    "cluster: local",
                    cluster.name(), cluster.size(), world.size()));
  }
  if (arguments.ranks && *arguments.ranks != cluster.size()) {
    throw InvalidInput(fmt::format("--ranks {} is for cluster: local; cluster '{}' has {} devices", *arguments.ranks,
                                   cluster.name(), cluster.size()));
  }
}

void check_slowdown(const Experiment& experiment, int ranks) {
  for (const auto& [rank, factor] : experiment.slowdown) {
    if (rank < ranks) continue;
    throw InvalidInput(fmt::format("{}: there is no rank {}, allowed: 0 to {}",
                                   cited(experiment, "slowdown." + std::to_string(rank)), rank, ranks - 1));
  }
}

// What else runs here than the experiment may seem to say.
void notice_machine(const Session& session, const Arguments& arguments, const comm::World& world) {
  const bool trains = arguments.command == "run" || arguments.command == "verify";
  if (trains && session.cluster.kind() == cluster::Kind::described && !session.cluster.emulated()) {
    log::notice(
        fmt::format("cluster '{}' is where the plan and the prediction are for; the {} here run on processors "
                    "of {} (emulated: true runs it in modelled time)",
                    session.cluster.name(), counted(world.size(), "rank"), world.host()));
  }
  const bool measures = session.experiment.costs.measured || session.experiment.costs.file;
  if (arguments.command == "run" && measures && session.oversubscribed && !session.cluster.emulated()) {
    log::notice(
        "costs: measured one rank beside the others, and here ranks take turns on the cores: what is predicted is for "
        "a core a rank, and the run takes longer");
  }
}

// What an emulated run is held against has to be the model that it runs.
void check_emulation(const cluster::Cluster& cluster, const Experiment& experiment, const Arguments& arguments) {
  if (!cluster.emulated()) return;
  if (arguments.command == "verify") {
    throw InvalidInput(
        fmt::format("cluster '{}' is emulated: nothing is computed that could be verified; "
                    "cluster: local verifies",
                    cluster.name()));
  }
  const SimulationSection& section = experiment.simulation;
  const bool as_modelled = section.options.contention == sim::Contention::fixed && section.options.overlap == 1 &&
                           section.options.noise.shape == sim::Shape::none && section.straggler_fraction == 0;
  if (arguments.command == "run" && !as_modelled) {
    throw InvalidInput(
        fmt::format("cluster '{}' is emulated: its links are those of simulation.contention: fixed, with "
                    "overlap 1, no jitter and no stragglers",
                    cluster.name()));
  }
}

// `plan -o`, `simulate --svg` and `--trace` must leave what they read.
void refuse_input_as_output(const Arguments& arguments, const Experiment& experiment) {
  std::vector<std::filesystem::path> inputs{arguments.files.front()};
  for (const auto& file : {experiment.model.file, experiment.data.file, experiment.cluster.file, experiment.costs.file,
                           experiment.plan.file}) {
    if (file) inputs.push_back(*file);
  }
  const bool to_file = arguments.command == "plan" || arguments.command == "profile";
  if (to_file && arguments.output) refuse_same_file(*arguments.output, inputs);
  if (!arguments.svg.empty()) refuse_same_file(arguments.svg, inputs);
  if (!arguments.trace_file.empty()) refuse_same_file(arguments.trace_file, inputs);
}

}  // namespace

Graph load_graph(Experiment& experiment) {
  const ModelSection& model = experiment.model;
  if (!model.file) return models::by_name(model.name).make(model.options);
  import::Options options;
  if (model.options.has("profile_batch")) {
    options.profile_batch = static_cast<double>(model.options.integer("profile_batch"));
  }
  import::Imported imported = import::load(*model.file, options);
  if (experiment.data.batch == 0) {
    experiment.data.batch = imported.batch;
    experiment.effective = effective_text(experiment);
  }
  experiment.model.name = imported.graph.name();
  return std::move(imported.graph);
}

Session open_session(const Arguments& arguments, const comm::World& world, int ranks) {
  std::optional<Graph> read;  // a large file is read once
  std::map<std::string, std::string> places;
  const std::string effective = world.on_root_then_all([&] {
    ExperimentSource source{arguments.files.front(), arguments.sets, {}};
    if (arguments.command == "run") source.output_folder = arguments.output;
    Experiment experiment = read_experiment(source);
    check_annotations(experiment);
    refuse_input_as_output(arguments, experiment);
    places = experiment.places;
    read.emplace(load_graph(experiment));
    const auto named = named_cluster(experiment, *read);
    if (named) check_size(*named, arguments, world);
    if (named) check_emulation(*named, experiment, arguments);
    check_slowdown(experiment, named ? named->size() : ranks);
    return experiment.effective;
  });
  Experiment experiment = experiment_from_text(effective);
  experiment.places = std::move(places);
  world.stall_limit(experiment.train.stall_limit);
  Graph graph = read ? std::move(*read) : load_graph(experiment);
  if (experiment.model.file) experiment.model.name = graph.name();
  const Share share = share_here(world, ranks);
  std::optional<cluster::Cluster> cluster = named_cluster(experiment, graph);
  if (!cluster) {
    std::vector<std::string> hosts;
    if (ranks == world.size()) hosts = world.gather_to_all(world.host());
    // Core sets may differ; the cluster must not: every rank orders its program by it. Rank 0's counts.
    const int threads = std::stoi(world.gather_to_all(std::to_string(share.threads)).front());
    const double speed = std::stod(world.gather_to_all(fmt::format("{}", share.speed)).front());
    cluster = cluster::local_cluster(ranks, hosts, threads, speed);
  }
  Session session{std::move(experiment), std::move(graph), std::move(*cluster), share.threads};
  session.experiment.train.variants =
      world.root() ? kept_variants(session.threads) : std::make_shared<kernels::Variants>();
  const std::vector<std::string> speeds = world.gather_to_all(fmt::format("{}", share.speed));
  session.oversubscribed =
      std::any_of(speeds.begin(), speeds.end(), [](const std::string& speed) { return std::stod(speed) < 1; });
  if (world.root()) notice_machine(session, arguments, world);
  world.now("measures costs");
  take_measured_costs(session, arguments, world);
  world.now("prepares");
  return session;
}

Session planning_session(Experiment experiment, int ranks) {
  Graph graph = load_graph(experiment);
  return planning_session(std::move(experiment), std::move(graph), ranks);
}

Session planning_session(Experiment experiment, Graph graph, int ranks) {
  auto named = named_cluster(experiment, graph);
  check_slowdown(experiment, named ? named->size() : ranks);
  Session session{std::move(experiment), std::move(graph), named ? std::move(*named) : cluster::local_cluster(ranks)};
  // Plans are made in a moment: what is not known is not measured.
  session.experiment.train.variants = std::make_shared<kernels::Variants>();
  session.experiment.train.variants->add(kept_variants(session.threads)->text());
  take_kept_costs(session);
  return session;
}

std::string why_not_trainable(const Graph& graph) {
  for (const Operator& op : graph.operators()) {
    if (op.schema->has_kernels) continue;
    return fmt::format("operator '{}' is of kind {}, which has no kernels", op.name, op.schema->name);
  }
  if (graph.loss() < 0) return "it has no loss";
  if (graph.inputs().size() == 1 && graph.labels().size() == 1) return "";
  return fmt::format("it reads {} inputs and {} labels, training feeds one of each", graph.inputs().size(),
                     graph.labels().size());
}

std::unique_ptr<dataset::Source> open_data(Session& session, const comm::World& world) {
  Experiment& experiment = session.experiment;
  if (session.cluster.emulated()) return emulated_data(experiment);
  world.on_root_then_all([&] {
    if (const std::string why_not = why_not_trainable(session.graph); !why_not.empty()) {
      throw InvalidInput(
          fmt::format("model {}: {}; it can be planned and simulated, not trained", experiment.model.name, why_not));
    }
    if (experiment.plan.reduction != sim::Reduction::all_reduce) {
      throw InvalidInput(fmt::format(
          "{}: ps is a model of a parameter server for plan and simulate; training sums gradients by all_reduce",
          cited(experiment, "plan.reduction")));
    }
    check_source(experiment, session.graph, *open_source(experiment, session.graph));
    return std::string();
  });
  auto source = open_source(experiment, session.graph);
  settle_iterations(experiment, *source);
  return source;
}

SampleCounts sample_counts(const Session& session) {
  const Experiment& experiment = session.experiment;
  try {
    const auto source = session.cluster.emulated() ? empty_source(experiment) : open_source(experiment, session.graph);
    return {source->samples(dataset::Split::train), source->samples(dataset::Split::test)};
  } catch (const Error&) {
    return {experiment.data.batch, 0};
  }
}

std::string precision_name(const Experiment& experiment) {
  return std::string(kernels::name(experiment.train.precision));
}

}  // namespace millrace::app
