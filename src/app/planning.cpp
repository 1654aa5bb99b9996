// Turns the plan section into a search, and a plan into programs.
#include "app/planning.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/batch_parts.h"
#include "app/memory_forecast.h"
#include "app/print.h"
#include "app/rank_exchange.h"
#include "app/tensor_parallel.h"
#include "base/count.h"
#include "base/errors.h"
#include "base/text.h"
#include "config/document.h"
#include "partitioners/registry.h"
#include "plan/op_patterns.h"
#include "plan/plan_text.h"
#include "plan/published.h"
#include "plan/validate.h"
#include "planner/device_groups.h"
#include "planner/least_memory.h"
#include "planner/order_costs.h"
#include "planner/simulated_ranking.h"
#include "planner/virtual_stages.h"
#include "program/lowering.h"
#include "program/verifier.h"
#include "runtime/supported.h"
#include "runtime/tree_reduction.h"
#include "schedules/registry.h"

namespace millrace::app {
namespace {

std::int64_t optimizer_bytes(const runtime::TrainOptions& train) {
  const std::int64_t real = kernels::real_bytes(train.precision);
  if (train.optimizer.kind != runtime::OptimizerKind::sgd) return 2 * real;
  return train.optimizer.momentum > 0 ? real : 0;
}

LoweringOptions lowering_options(const Experiment& experiment, std::int64_t tag_limit) {
  LoweringOptions options;
  options.hiding = hiding_of(experiment);
  options.shard_optimizer = experiment.train.shard_optimizer;
  if (options.hiding == Hiding::update && experiment.train.clip_norm > 0) {
    throw InvalidInput(
        fmt::format("{}: updates that wait for their own reduction only leave no norm for "
                    "train.clip_norm {}; allowed with it: drain, backward",
                    cited(experiment, "plan.hiding"), experiment.train.clip_norm));
  }
  // The highest tag is that of exchanges inside tensor-parallel stages.
  options.tag_limit =
      static_cast<std::int32_t>(std::min<std::int64_t>(tag_limit - 1, std::numeric_limits<std::int32_t>::max()));
  return options;
}

// Places that the stages of a pipeline take under the schedule that takes fewest.
int least_places(const PlanSection& plan, int stages) {
  int least = stages;
  for (const Choice& choice : plan.schedules) {
    const int each = planner::stages_of_place(schedules::by_name(choice.name), choice.options);
    least = std::min(least, (stages + each - 1) / each);
  }
  return least;
}

// A command that plans alone takes as many ranks as it is told.
bool world_is_free(const Session& session, const Arguments& arguments) {
  const bool trains = arguments.command == "run" || arguments.command == "verify";
  return !trains && !session.experiment.cluster.described && !session.experiment.cluster.carried;
}

// What can never work is an error of the experiment, not a search without result.
void check_counts(const Session& session, const Arguments& arguments) {
  const PlanSection& plan = session.experiment.plan;
  const int ranks = session.cluster.size() / plan.tensor_parallel;
  const int pipelines = plan.pipelines.value_or(1);
  const int stages =
      plan.explicit_stages.empty() ? plan.stages.value_or(1) : static_cast<int>(plan.explicit_stages.size());
  const int places = least_places(plan, stages);
  const bool uneven = plan.explicit_stages.empty() &&
                      std::any_of(plan.partitioners.begin(), plan.partitioners.end(), [](const Choice& choice) {
                        return (partitioners::by_name(choice.name).capabilities & partitioners::kUnevenPipelines) != 0;
                      });
  const int needed = pipelines * places * plan.tensor_parallel;
  if (pipelines * places > ranks || (ranks % pipelines != 0 && !uneven)) {
    throw Misfit(fmt::format(
        "{} {} x plan.stages {}{} needs {} or more, shared evenly by the pipelines (partitioner device_aware also "
        "makes uneven ones); the job has {}{}",
        cited(session.experiment, "plan.pipelines", "plan.stages"), pipelines, stages,
        plan.tensor_parallel > 1 ? fmt::format(" x plan.tensor_parallel {}", plan.tensor_parallel) : "",
        counted(needed, "rank"), session.cluster.size(),
        world_is_free(session, arguments) ? fmt::format(" (--ranks {} plans for that many)", needed) : ""));
  }
  if (stages > session.graph.size()) {
    throw Misfit(fmt::format("{}: {}, but model {} has {}", cited(session.experiment, "plan.stages"),
                             counted(stages, "stage"), session.experiment.model.name,
                             counted(session.graph.size(), "operator")));
  }
  const std::int64_t batch = session.experiment.data.batch;
  const std::int64_t micro_batches =
      plan.micro_batches.empty() ? 1 : *std::min_element(plan.micro_batches.begin(), plan.micro_batches.end());
  if (pipelines * micro_batches > batch) {
    throw Misfit(fmt::format("{} {} is smaller than plan.pipelines {} x plan.micro_batches {} = {}",
                             cited(session.experiment, "data.batch"), batch, pipelines, micro_batches,
                             pipelines * micro_batches));
  }
}

// micro_batch_size gives the count for a fixed number of pipelines (REPORTS D03: the equation is shown).
std::vector<std::int64_t> micro_batch_counts(const Session& session) {
  const PlanSection& plan = session.experiment.plan;
  if (!plan.micro_batch_size) return plan.micro_batches;
  const std::int64_t batch = session.experiment.data.batch, size = *plan.micro_batch_size;
  if (!plan.pipelines)
    throw InvalidInput(fmt::format("{} needs plan.pipelines: batch = pipelines x micro-batches x size",
                                   cited(session.experiment, "plan.micro_batch_size")));
  const std::int64_t count = batch / (*plan.pipelines * size);
  if (count * *plan.pipelines * size != batch) {
    throw Misfit(fmt::format("{}: {} x {} x {} = {}, but data.batch is {}",
                             cited(session.experiment, "plan.micro_batch_size"), counted(*plan.pipelines, "pipeline"),
                             counted(count, "micro-batch"), counted(size, "row"), count * *plan.pipelines * size,
                             batch));
  }
  return {count};
}

plan::Problem problem_of(const Session& session, const cost::CostModel& cost) {
  const Experiment& experiment = session.experiment;
  plan::Problem problem;
  problem.graph = &session.graph;
  problem.cluster = &session.cluster;
  problem.cost = &cost;
  problem.batch = experiment.data.batch;
  problem.objective = plan::objective_by_name(experiment.plan.objective);
  problem.pipelines = experiment.plan.pipelines;
  problem.stages = experiment.plan.stages;
  problem.memory_limit = experiment.plan.memory_limit;
  problem.sizes = training_bytes(experiment);
  if (!experiment.plan.bucket_sizes.empty()) problem.bucket_size = experiment.plan.bucket_sizes.front();
  problem.micro_batch_size = experiment.plan.micro_batch_size;
  problem.recompute = experiment.plan.recompute;
  problem.seed = experiment.seed;
  return problem;
}

// Plans whose replicas have several devices are judged by their parts; published planners have rules of their own.
void judge_parts(const Session& session, plan::Problem& problem) {
  if (!plan::is_published(problem.objective)) problem.tensor = &split_of(session);
}

// Closed forms only prune where simulating the candidates is affordable; elsewhere they decide.
constexpr double kSimulatedWork = 2e6;       // operators × devices
constexpr int kSimulatedDevices = 64;        // each has a program of its own
constexpr std::size_t kMostSimulated = 256;  // candidates kept for it

bool simulates(const plan::Problem& problem) {
  const double work = static_cast<double>(problem.graph->size()) * problem.cluster->size();
  const bool affordable = work <= kSimulatedWork && problem.cluster->size() <= kSimulatedDevices;
  return affordable && !plan::is_published(problem.objective);
}

// With the first of plan.deferred_weights; others are tried on what is found.
planner::ScheduleChoice schedule_choice(const Session& session, const Choice& choice) {
  planner::ScheduleChoice chosen = planner::ScheduleChoice::of(choice.name);
  for (const auto& [name, value] : choice.options.all()) chosen.options.set(name, value);
  const std::vector<std::int64_t>& deferred = session.experiment.plan.deferred_weights;
  if (deferred.empty() || deferred.front() == 0) return chosen;
  if (!chosen.options.has(schedules::kDeferredWeights)) {
    throw InvalidInput(
        fmt::format("{}: {} does not flush, so that there is no end of an iteration to defer weight "
                    "gradients to; leave deferred_weights out or take a synchronous schedule",
                    cited(session.experiment, "plan.deferred_weights"), choice.name));
  }
  const PlanSection& plan = session.experiment.plan;
  if (plan.recompute == plan::Recompute::all || plan.recompute_mask != planner::RecomputeMask::Kind::as_cut) {
    throw InvalidInput(fmt::format("{}: deferred weight gradients keep what plan.recompute drops; leave one out",
                                   cited(session.experiment, "plan.deferred_weights")));
  }
  chosen.options.set(schedules::kDeferredWeights, deferred.front());
  return chosen;
}

planner::SimulatedRanking search_settings(const PlanSection& plan) {
  planner::SimulatedRanking settings;
  settings.deeper_warmup = plan.search_warmup;
  settings.bucket_sizes = plan.bucket_sizes;
  if (plan.bucket_sizes.empty()) {
    settings.bucket_sizes.assign(planner::kAutomaticBucketSizes.begin(), planner::kAutomaticBucketSizes.end());
  }
  settings.deferred_weights = plan.deferred_weights;
  if (plan.deferred_weights.empty()) {
    settings.deferred_weights.assign(planner::kAutomaticDeferredWeights.begin(),
                                     planner::kAutomaticDeferredWeights.end());
  }
  return settings;
}

constexpr int kMostTries = 4;      // with less memory, where devices hold more than was counted
constexpr double kTighter = 0.97;  // what is left out comes in whole tensors

bool is_over_a_limit(const plan::Problem& problem, const plan::PlanReport& report) {
  const std::optional<Bytes> limit = planner::least_limit(problem);
  return limit && report.peak_memory_bytes > limit->value();
}

// What turns out to be impossible goes to the refused plans.
void simulate_candidates(const Session& session, const plan::Problem& problem, planner::SimulatedRanking settings,
                         Planned& planned) {
  if (!simulates(problem)) return;
  planner::Ranking& ranking = planned.ranking;
  const Experiment& experiment = session.experiment;
  settings.options = experiment.simulation.options;
  settings.options.noise = {};  // draws would rank plans by luck
  settings.hiding = hiding_of(experiment);
  // Where the next iteration starts stage by stage, what counts is its distance from the one before, in as many as
  // `simulate` looks at.
  if (settings.hiding != Hiding::update) settings.options.iterations = 1;
  planner::SimulatedCounts counts = planner::rank_by_simulation(problem, ranking.plans, settings);
  planned.choices = std::move(counts.choices);
  planned.choices.push_back(fmt::format(
      "among {} programs of {}, {} of them equal to others; {} could not win, {} refused", counts.simulated,
      counted(static_cast<std::int64_t>(ranking.plans.size()), "plan"), counts.reused, counts.pruned, counts.refused));
  while (!ranking.plans.empty() && !ranking.plans.back().report.feasible) {
    const plan::Candidate& refused = ranking.plans.back();
    if (counts.least_refused_memory == Bytes(refused.report.peak_memory_bytes)) {
      ranking.least_memory =
          planner::LeastMemory{*counts.least_refused_memory, false, planner::fullest_stage(refused.report)};
    }
    ranking.refusals.push_back(
        {refused.report.partitioner, refused.report.schedule, refused.report.micro_batches, refused.report.pipelines,
         static_cast<int>(refused.plan.pipelines.front().stages.size()),
         is_over_a_limit(problem, refused.report) ? plan::Refusal::memory_exceeded : plan::Refusal::not_offered,
         refused.report.why_not});
    ranking.plans.pop_back();
  }
  if (!ranking.plans.empty()) ranking.least_memory.reset();
}

// Clipping needs the norm of all gradients before an update, which a schedule that does not flush never has.
void require_norm(const Experiment& experiment, const std::string& schedule) {
  if (experiment.train.clip_norm <= 0) return;
  if ((schedules::by_name(schedule).capabilities & schedules::kSynchronous) != 0) return;
  throw InvalidInput(
      fmt::format("{} {}: schedule {} updates weights without waiting for the global gradient norm; "
                  "leave train.clip_norm out, or take a synchronous schedule",
                  cited(experiment, "train.clip_norm"), experiment.train.clip_norm, schedule));
}

// Parts of an update are put together once an iteration, when all of it is done.
void require_shardable(const Session& session, const std::string& schedule) {
  const Experiment& experiment = session.experiment;
  if (!experiment.train.shard_optimizer) return;
  const auto refuse = [&](const std::string& why) {
    throw InvalidInput(fmt::format("{} true: {}", cited(experiment, "train.shard_optimizer"), why));
  };
  if ((schedules::by_name(schedule).capabilities & schedules::kSynchronous) == 0) {
    refuse(
        fmt::format("schedule {} updates weights while micro-batches are under way; leave it out, or take a "
                    "synchronous schedule",
                    schedule));
  }
  if (experiment.train.any_grid) {
    refuse(
        "train.reproducible any sums all gradients in one tree, of which every owner needs the whole; leave one of "
        "them out");
  }
  if (experiment.plan.tensor_parallel > 1 && batch_weights(session).empty()) {
    refuse(fmt::format("plan.tensor_parallel {} has parameters in parts already; leave one of them out",
                       experiment.plan.tensor_parallel));
  }
  if (experiment.plan.reduction == sim::Reduction::parameter_server) {
    refuse("plan.reduction ps keeps all weights on a server; leave one of them out");
  }
}

// \throws InvalidInput  patterns that match nothing.
planner::RecomputeMask recompute_mask(const Session& session) {
  const PlanSection& section = session.experiment.plan;
  planner::RecomputeMask mask{section.recompute_mask, {}};
  if (mask.kind != planner::RecomputeMask::Kind::given) return mask;
  plan::ResolvedStages found = plan::resolve_patterns(session.graph, {section.recompute_patterns});
  if (!found.faults.empty()) {
    const std::string where = cited(session.experiment, "plan.recompute");
    std::vector<std::string> lines;
    for (const plan::PatternFault& fault : found.faults)
      lines.push_back(fmt::format("{}[{}]: {}", where, fault.item, fault.text));
    throw InvalidInput(join(lines, "\n"));
  }
  mask.ops = std::move(found.ops.front());
  return mask;
}

Planned plan_of_file(const Session& session, plan::Problem problem) {
  problem.recompute = plan::Recompute::none;  // beside what the file says
  problem.live_by_depth = true;
  plan::Candidate candidate;
  candidate.plan =
      plan::load_plan(*session.experiment.plan.file, session.graph,
                      {session.cluster.size(), session.experiment.data.batch, plan::is_published(problem.objective)});
  require_norm(session.experiment, candidate.plan.schedule);
  if (plan::splits_operators(candidate.plan)) judge_parts(session, problem);
  problem.schedule = candidate.plan.schedule;
  problem.micro_batches = candidate.plan.pipelines.front().micro_batches;
  candidate.report = planner::closed_form(problem)->evaluate(candidate.plan);
  candidate.report.partitioner = "file";
  Planned planned;
  if (candidate.report.feasible) {
    planned.ranking.plans.push_back(std::move(candidate));
    const MemoryForecast forecast(session);
    planner::SimulatedRanking settings{.deeper_warmup = false};
    settings.device_memory = [&](const Plan& plan) { return forecast.of(plan); };
    simulate_candidates(session, problem, settings, planned);
    if (!planned.ranking.plans.empty()) return planned;
    const plan::Refused& refused = planned.ranking.refusals.back();
    const std::string file = session.experiment.plan.file->string();
    if (refused.reason != plan::Refusal::memory_exceeded)
      throw InvalidInput(fmt::format("{}: {}", file, refused.detail));
    planned.why_not = fmt::format("the plan of {} does not fit: {}", file, refused.detail);
  } else {
    planned.why_not = fmt::format("the plan of {} does not fit: {}", session.experiment.plan.file->string(),
                                  candidate.report.why_not);
  }
  return planned;
}

// Errors of the user's own stages cite the key.
planner::Ranking search(const planner::Request& request, const Experiment& experiment) {
  if (!request.explicit_stages) return planner::search(request);
  try {
    return planner::search(request);
  } catch (const InvalidInput& error) {
    std::string_view text = error.what();
    for (const std::string_view what : {"explicit stages:", "stages:"}) {
      if (text.starts_with(what)) {
        text.remove_prefix(what.size());
        throw InvalidInput(fmt::format("{}:{}", cited(experiment, "plan.stages"), text));
      }
    }
    throw;
  }
}

}  // namespace

Hiding hiding_of(const Experiment& experiment) {
  const bool needs_norm = experiment.train.clip_norm > 0 || experiment.train.any_grid;
  return experiment.plan.hiding.value_or(needs_norm ? Hiding::backward : Hiding::update);
}

plan::TrainingBytes training_bytes(const Experiment& experiment) {
  return {kernels::carried_bytes(experiment.train.precision), optimizer_bytes(experiment.train),
          experiment.train.shard_optimizer};
}

void check_plan_settings(const Session& session, const Arguments& arguments) {
  const PlanSection& section = session.experiment.plan;
  if (section.file || plan::is_published(plan::objective_by_name(section.objective))) return;
  check_counts(session, arguments);
  micro_batch_counts(session);
  const auto stages = section.explicit_stages.empty() ? static_cast<std::size_t>(section.stages.value_or(0))
                                                      : section.explicit_stages.size();
  if (stages > 0 && !section.warmup.empty() && section.warmup.size() != stages) {
    throw InvalidInput(fmt::format("{} has {} entries, the plan has {}", cited(session.experiment, "plan.warmup"),
                                   section.warmup.size(), counted(static_cast<std::int64_t>(stages), "stage")));
  }
  for (const Choice& choice : section.schedules) {
    require_norm(session.experiment, choice.name);
    require_shardable(session, choice.name);
  }
}

Planned make_plans(const Session& session, const Arguments& arguments, plan::Exchange* exchange) {
  const PlanSection& section = session.experiment.plan;
  const int tensor = section.tensor_parallel;
  const auto cost = make_costs(session);
  if (section.file) return plan_of_file(session, problem_of(session, *cost));
  planner::Request request;
  request.problem = problem_of(session, *cost);
  DeviceGroups groups;
  const std::vector<double> rows_of_group = batch_weights(session);
  if (tensor > 1) {  // partitioners see a group as one device
    groups = groups_of(session, rows_of_group.empty());
    request.problem.cluster = groups.cluster.get();
    request.problem.cost = groups.cost.get();
    request.problem.memory_limit.reset();  // theirs has it
  }
  request.problem.exchange = exchange;
  const bool published = plan::is_published(request.problem.objective);
  if (!published) check_plan_settings(session, arguments);
  for (const Choice& choice : section.partitioners) {
    planner::PartitionerChoice partitioner{choice.name, choice.options};
    if (arguments.time_limit_s && partitioner.options.has("time_limit")) {
      partitioner.options.set("time_limit", Seconds(*arguments.time_limit_s));
    }
    request.partitioners.push_back(std::move(partitioner));
  }
  if (arguments.time_limit_s) request.patience = Seconds(*arguments.time_limit_s);
  if (!section.explicit_stages.empty()) {
    request.explicit_stages = section.explicit_stages;
    request.problem.live_by_depth = true;
  }
  request.schedules.clear();
  for (const Choice& choice : section.schedules) request.schedules.push_back(schedule_choice(session, choice));
  request.micro_batches = published ? section.micro_batches : micro_batch_counts(session);
  request.warmup = section.warmup;
  request.recompute = recompute_mask(session);
  const auto top = static_cast<std::size_t>(arguments.top);
  request.judged_again = simulates(problem_of(session, *cost));
  request.top = request.judged_again ? std::max(top, kMostSimulated) : top;
  const MemoryForecast forecast(session);
  if (request.judged_again && tensor == 1) request.device_memory = [&](const Plan& plan) { return forecast.of(plan); };
  planner::SimulatedRanking settings = search_settings(section);
  if (request.judged_again) settings.device_memory = [&](const Plan& plan) { return forecast.of(plan); };
  if (arguments.command == "plan") settings.asked = top;
  plan::Problem judged = request.problem;  // variants of recomputation are not tried where the user says which
  if (section.recompute_mask != planner::RecomputeMask::Kind::as_cut) judged.recompute = plan::Recompute::none;
  if (tensor > 1) {
    judged.cluster = &session.cluster;
    judged.cost = cost.get();
    judged.memory_limit = section.memory_limit;
    judged.live_by_depth = true;
    if (rows_of_group.empty()) judge_parts(session, judged);
  }
  const auto apart = [&](Plan& plan) {
    rows_of_group.empty() ? planner::spread(plan, tensor) : spread_batch(plan, rows_of_group);
  };
  const auto ranked = [&] {
    Planned found;
    found.ranking = search(request, session.experiment);
    if (tensor == 1) return found;
    if (found.ranking.plans.empty() && found.ranking.least_memory) {
      // What a group lacks tells nothing of its devices: their memory is judged when it has come apart.
      const cluster::Cluster roomy = planner::without_limits(*groups.cluster);
      planner::Request unlimited = request;
      unlimited.problem.cluster = &roomy;
      unlimited.problem.memory_limit.reset();
      found.ranking = search(unlimited, session.experiment);
    }
    planner::take_groups_apart(judged, apart, settings.device_memory, found.ranking);
    return found;
  };
  Planned planned = ranked();
  const bool found = !planned.ranking.plans.empty() || planned.ranking.least_memory;
  simulate_candidates(session, judged, settings, planned);
  // Devices hold more than the search counted: it is asked for plans that need as much less.
  for (int tries = 0; found && planned.ranking.plans.empty() && planned.ranking.least_memory && tries < kMostTries;
       ++tries) {
    const double over = static_cast<double>(planned.ranking.least_memory->limit.value()) /
                        static_cast<double>(planner::least_limit(judged)->value());
    if (over <= 1) break;
    const auto counted = static_cast<double>(planner::least_limit(request.problem)->value());
    request.problem.memory_limit = Bytes(static_cast<std::int64_t>(counted / over * kTighter));
    Planned tighter = ranked();
    if (tighter.ranking.plans.empty()) break;
    simulate_candidates(session, judged, settings, tighter);
    planned = std::move(tighter);
  }
  planned.why_not = planned.ranking.why_not();
  if (planned.ranking.plans.size() > top) planned.ranking.plans.resize(top);
  return planned;
}

Planned make_plans_together(const Session& session, const Arguments& arguments, const comm::World& world) {
  const PlanSection& section = session.experiment.plan;
  const bool together = std::any_of(section.partitioners.begin(), section.partitioners.end(), [](const Choice& choice) {
    return (partitioners::by_name(choice.name).capabilities & partitioners::kAllRanks) != 0;
  });
  if (together && world.size() > 1) {
    RankExchange exchange(world);
    return comm::on_all_alike([&] { return make_plans(session, arguments, &exchange); });
  }
  Planned planned;
  world.on_root_then_all([&] {
    planned = make_plans(session, arguments);
    return std::string();
  });
  return planned;
}

plan::Candidate& best_of(const Session& session, const Arguments& arguments, Planned& planned) {
  if (planned.ranking.plans.empty()) {
    if (arguments.format == Format::json) print(plans_document(session, planned));
    throw Error(ExitCode::infeasible, planned.why_not);
  }
  return planned.ranking.plans.front();
}

Chosen choose_plan(const Session& session, const Arguments& arguments, const comm::World& world) {
  Chosen chosen;
  world.now("chooses a plan");
  Planned planned = make_plans_together(session, arguments, world);
  const std::string text = world.on_root_then_all([&] {
    const plan::Candidate& best = best_of(session, arguments, planned);
    chosen.report = best.report;
    return plan::to_yaml(best.plan, session.graph);
  });
  config::Problems problems;
  const config::Node document = config::load_text(text, nullptr, problems);
  chosen.plan = plan::read_plan(document, session.graph, problems);
  problems.throw_if_any();
  world.now("prepares");
  return chosen;
}

Program training_program(const Session& session, const Plan& plan, std::int64_t batch, std::int64_t tag_limit) {
  LoweringOptions options = lowering_options(session.experiment, tag_limit);
  options.largest_batch = session.experiment.data.batch;
  options.parts = parts_of(session, plan);
  options.post_validation = session.experiment.train.clip_norm > 0 &&
                            (schedules::by_name(plan.schedule).capabilities & schedules::kPostValidates) != 0;
  const auto cost = make_costs(session);
  plan::Problem problem = problem_of(session, *cost);
  if (plan::splits_operators(plan)) judge_parts(session, problem);
  const ComputeOrder order = planner::fitted_order(plan, problem);
  Program program = lower(session.graph, plan, order, batch, options);
  require_verified(session.graph, program, options.tag_limit);
  return program;
}

runtime::Programs make_programs(const Session& session, const Plan& plan, std::int64_t train_samples,
                                std::int64_t test_samples, std::int64_t tag_limit) {
  const DataSection& data = session.experiment.data;
  LoweringOptions options = lowering_options(session.experiment, tag_limit);
  options.parts = parts_of(session, plan);
  runtime::Programs programs;
  // Under tail `uneven` a data set smaller than a batch has short batches only.
  const bool whole = data.tail != dataset::Tail::uneven || train_samples >= data.batch;
  if (whole) programs.train.push_back(training_program(session, plan, data.batch, tag_limit));
  if (data.tail == dataset::Tail::uneven && train_samples % data.batch != 0) {
    programs.train.push_back(training_program(session, plan, train_samples % data.batch, tag_limit));
  }
  for (const Program& program : programs.train) {
    runtime::require_supported(program, session.experiment.train.precision, session.experiment.train.clip_norm);
    if (session.experiment.train.any_grid) runtime::require_tree_reducible(session.graph, program);
  }
  if (!session.experiment.train.evaluates) return programs;
  std::vector<std::int64_t> sizes;
  if (test_samples > 0) sizes.push_back(data.batch);
  if (test_samples % data.batch != 0) sizes.push_back(test_samples % data.batch);
  for (const std::int64_t size : sizes) {
    programs.evaluation.push_back(lower_evaluation(session.graph, plan, size, options));
    require_verified(session.graph, programs.evaluation.back(), options.tag_limit);
  }
  return programs;
}

}  // namespace millrace::app
