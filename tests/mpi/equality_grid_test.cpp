// Any synchronous plan gives the gradients of one rank: pipelines × stages × micro-batches × schedules × networks in
// one launch, with kernels, lowering, transports and optimizers dealt out. Pairwise: a selection in which every pair of
// values meets; Full: every combination.
//
// Full leaves out what is another case by construction: schedules that order the computations of a plan as one before
// them does (of one stage, or of one micro-batch, several do), and masks that name the same operators. Rows and
// iterations are few, since each iteration executes the same program: the second has momentum, and iterations on both
// sides.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "base/random.h"
#include "program/stage_dag.h"
#include "schedules/registry.h"
#include "tests/mpi/forced_variants.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"
#include "tests/mpi/training_run.h"

namespace millrace::testing {
namespace {

constexpr std::int64_t kBatch = 29;    // divides by no number of micro-batches
constexpr std::int64_t kNormRows = 3;  // of a micro-batch where there is batch norm: it wants the same ones on one rank
constexpr std::int64_t kSteps = 4;
const std::vector<std::int64_t> kMicroBatches{1, 2, 3, 5, 8};

// What is dealt to the cases. Kernels, of the runs in single precision: as they are; one algorithm for all
// convolutions, and the primitive for all products of matrices; bf16.
const std::vector<std::string> kKernels{"standard", "winograd", "channels last", "bf16"};
const std::vector<std::string> kLowerings{"drain", "hidden", "fused updates", "updates apart", "sharded", "deferred"};
const std::vector<std::string> kTransports{"shared memory", "mpi", "nodes of two"};
const std::vector<std::string> kOptimizers{"sgd", "adamw"};

struct Case {
  std::string network;
  Grid grid;
  std::string kernels, lowering, transport, optimizer;
};

std::string text_of(const Case& c) {
  return fmt::format("{}: {} pipelines x {} stages x {} micro-batches, {}, recompute {}, {}, {}, {}, {}", c.network,
                     c.grid.pipelines, c.grid.stages, c.grid.micro_batches, c.grid.schedule,
                     static_cast<int>(c.grid.recompute), c.kernels, c.lowering, c.transport, c.optimizer);
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& entry : schedules::registry()) {
    if ((entry.capabilities & schedules::kSynchronous) != 0) names.push_back(entry.name);
  }
  return names;
}

using Order = std::tuple<std::vector<Pipeline>, std::vector<std::vector<ComputeAction>>>;

// Some schedules take some numbers of stages and micro-batches only (METHODS 2); stages must not be empty.
std::optional<Order> order_of(const Graph& graph, const Grid& grid) {
  const schedules::Placement placement = schedules::by_name(grid.schedule).placement;
  const bool two = placement == schedules::Placement::in_turn || placement == schedules::Placement::vee;
  if (two && 2 * grid.stages > graph.size()) return std::nullopt;
  if (placement == schedules::Placement::both_ways && grid.micro_batches % 2 != 0) return std::nullopt;
  try {
    const Plan plan = make_plan(graph, grid);
    return Order{plan.pipelines, schedules::compute_order(plan, make_stage_dag(graph, plan)).ranks()};
  } catch (const InvalidInput&) {
    return std::nullopt;
  }
}

const std::string& dealt(const std::vector<std::string>& values, int number, std::uint64_t axis) {
  return values[Random(1, "deal", 0, static_cast<std::uint64_t>(number)).below(values.size(), axis)];
}

constexpr int kMostStages = 4, kMostPipelines = 3, kRecomputes = 4;

// Of the product of all axes; the last ones change first.
Case case_of(int number) {
  int rest = number;
  const auto next = [&rest](std::size_t values) {
    const int value = rest % static_cast<int>(values);
    rest /= static_cast<int>(values);
    return value;
  };
  Case c;
  c.grid.recompute = static_cast<Recompute>(next(kRecomputes));
  c.grid.pipelines = 1 + next(kMostPipelines);
  const std::vector<std::string> schedules = schedule_names();
  c.grid.schedule = schedules[static_cast<std::size_t>(next(schedules.size()))];
  c.grid.micro_batches = kMicroBatches[static_cast<std::size_t>(next(kMicroBatches.size()))];
  c.grid.stages = 1 + next(kMostStages);
  c.network = small_networks()[static_cast<std::size_t>(next(small_networks().size()))];
  c.kernels = dealt(kKernels, number, 0);
  c.lowering = dealt(kLowerings, number, 1);
  c.transport = dealt(kTransports, number, 2);
  c.optimizer = dealt(kOptimizers, number, 3);
  // Deferred weight gradients need what the forward kept.
  if (c.lowering == "deferred" && c.grid.recompute != Recompute::none) c.lowering = "hidden";
  return c;
}

// All that are possible, and none that is another one before it.
std::vector<int> all_cases() {
  std::vector<int> cases;
  std::vector<Order> orders;                 // of one network with one number of stages and micro-batches
  std::vector<std::vector<Pipeline>> plans;  // of one schedule and number of pipelines
  const auto is_new = [](auto& known, auto value) {
    if (std::find(known.begin(), known.end(), value) != known.end()) return false;
    known.push_back(std::move(value));
    return true;
  };
  const int schedules = static_cast<int>(schedule_names().size());
  const int of_schedule = kMostPipelines * kRecomputes;
  const int of_order = schedules * of_schedule;
  const int all = static_cast<int>(small_networks().size() * kMicroBatches.size()) * kMostStages * of_order;
  for (int number = 0; number < all;) {
    const Case c = case_of(number);
    const Graph graph = small_network(c.network);
    if (number % of_order == 0) orders.clear();
    if (number % of_schedule == 0) {
      std::optional<Order> order = order_of(graph, c.grid);
      if (!order || !is_new(orders, std::move(*order))) {
        number += of_schedule;
        continue;
      }
    }
    if (number % kRecomputes == 0) plans.clear();
    if (is_new(plans, make_plan(graph, c.grid).pipelines)) cases.push_back(number);
    ++number;
  }
  return cases;
}

using Pair = std::tuple<int, std::string, int, std::string>;  // two axes and a value of each

std::vector<Pair> pairs_of(const Case& c) {
  const std::vector<std::string> values{c.network,
                                        std::to_string(c.grid.pipelines),
                                        std::to_string(c.grid.stages),
                                        std::to_string(c.grid.micro_batches),
                                        c.grid.schedule,
                                        std::to_string(static_cast<int>(c.grid.recompute)),
                                        c.kernels,
                                        c.lowering,
                                        c.transport,
                                        c.optimizer};
  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < values.size(); ++a) {
    for (std::size_t b = a + 1; b < values.size(); ++b) {
      pairs.emplace_back(static_cast<int>(a), values[a], static_cast<int>(b), values[b]);
    }
  }
  return pairs;
}

// Greedy covering: the case with the most pairs not yet met comes next.
std::vector<int> pairwise_cases() {
  const std::vector<int> all = all_cases();
  std::map<Pair, std::size_t> number;
  std::vector<std::vector<std::size_t>> pairs;  // by case
  for (const int c : all) {
    std::vector<std::size_t>& its = pairs.emplace_back();
    for (const Pair& pair : pairs_of(case_of(c))) {
      its.push_back(number.try_emplace(pair, number.size()).first->second);
    }
  }
  std::vector<bool> met(number.size(), false);
  const auto fresh = [&](const std::vector<std::size_t>& its) {
    return std::count_if(its.begin(), its.end(), [&](std::size_t pair) { return !met[pair]; });
  };
  std::vector<int> chosen;
  for (;;) {
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) { return fresh(a) < fresh(b); });
    if (fresh(*best) == 0) return chosen;
    for (const std::size_t pair : *best) met[pair] = true;
    chosen.push_back(all[static_cast<std::size_t>(best - pairs.begin())]);
  }
}

enum class Selection { pairwise, full };

// Chosen once for all tests, by rank 0: twelve ranks would take turns on few cores.
const std::vector<Case>& cases(Selection selection) {
  static const std::vector<Case> chosen = [selection] {
    std::vector<int> numbers;
    if (world_rank() == 0) numbers = selection == Selection::full ? all_cases() : pairwise_cases();
    patient_barrier();
    int count = static_cast<int>(numbers.size());
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    numbers.resize(static_cast<std::size_t>(count));
    MPI_Bcast(numbers.data(), count, MPI_INT, 0, MPI_COMM_WORLD);
    std::vector<Case> found;
    for (const int number : numbers) found.push_back(case_of(number));
    return found;
  }();
  return chosen;
}

// Blocks of channels are for wide convolutions: 16 fill theirs, 20 do not.
Graph network_for(const Case& c) {
  if (c.network != "resnet" || (c.kernels != "winograd" && c.kernels != "channels last")) {
    return small_network(c.network);
  }
  return models::make("resnet", {{"blocks", "[1, 1]"},
                                 {"width", c.kernels == "winograd" ? "16" : "20"},
                                 {"image", "8"},
                                 {"channels", "1"},
                                 {"classes", "5"}});
}

std::int64_t batch_of(const Case& c) {
  return c.network == "resnet" ? kNormRows * c.grid.pipelines * c.grid.micro_batches : kBatch;
}

// The one-rank run that a case is held against.
Grid reference_of(const Case& c) {
  return {1, 1, c.network == "resnet" ? c.grid.pipelines * c.grid.micro_batches : 1, "gpipe"};
}

RunSettings settings(const std::string& optimizer, std::int64_t batch) {
  RunSettings s;
  s.batch = batch;
  s.train.iterations = kSteps;
  s.train.optimizer = {.kind = runtime::OptimizerKind::sgd, .learning_rate = 0.01, .momentum = 0.9};
  if (optimizer == "adamw") s.train.optimizer = {.kind = runtime::OptimizerKind::adamw, .learning_rate = 1e-3};
  s.train.optimizer.weight_decay = 0.01;
  return s;
}

RunSettings wide_settings(const std::string& optimizer, std::int64_t batch) {
  RunSettings s = settings(optimizer, batch);
  s.train.kernels = "reference";
  s.train.precision = kernels::Precision::fp64;
  return s;
}

// Made once: they are long.
std::shared_ptr<kernels::Variants> variants_of(const Case& c, const Graph& graph) {
  static std::map<std::string, std::shared_ptr<kernels::Variants>> known;
  std::shared_ptr<kernels::Variants>& variants = known[c.network + c.kernels];
  if (!variants) variants = all_of(graph, c.kernels, "matmul");
  return variants;
}

RunSettings optimised_settings(const Case& c, const Graph& graph) {
  RunSettings s = settings("sgd", batch_of(c));
  if (c.kernels == "bf16") s.train.precision = kernels::Precision::bf16;
  if (c.kernels == "winograd" || c.kernels == "channels last") s.train.variants = variants_of(c, graph);
  return s;
}

// What is dealt, beside kernels and optimizer.
RunSettings as_dealt(const Case& c, RunSettings s) {
  if (c.lowering != "drain") s.lowering.hiding = Hiding::update;
  if (c.lowering == "hidden") s.lowering.hiding = Hiding::backward;
  s.lowering.fuse_updates = c.lowering != "updates apart";
  s.lowering.shard_optimizer = s.train.shard_optimizer = c.lowering == "sharded";
  s.transport.shares_memory = c.transport != "mpi";
  s.transport.ranks_per_node = c.transport == "nodes of two" ? 2 : 0;
  return s;
}

Plan plan_of(const Case& c, const Graph& graph) {
  Plan plan = make_plan(graph, c.grid);
  if (c.lowering == "deferred") plan.schedule_options[schedules::kDeferredWeights] = "2";
  return plan;
}

/// A plan that computes the same sums: the parameters that it trains are the same to the bit.
struct Whole {
  Grid grid;
  bool same_norms = true;  ///< else norms are those of parts, added up in another order
};

// The same pipelines with one stage each. Two pipelines that run both ways share devices, so a tied parameter or
// several groups add up in another order, as MPI does.
std::optional<Whole> unsplit(const Case& c) {
  const bool both_ways = schedules::by_name(c.grid.schedule).placement == schedules::Placement::both_ways;
  const bool several = c.grid.pipelines > 1;
  if (c.grid.stages == 1 || (several && c.transport != "shared memory")) return std::nullopt;
  const bool tied = c.network == "gpt";  // both of its stages own the parameter
  const bool same_norms = c.lowering != "sharded" || !(several || both_ways || tied);
  if (!both_ways) return Whole{{c.grid.pipelines, 1, c.grid.micro_batches, "gpipe"}, same_norms};
  if (several || tied) return std::nullopt;
  return Whole{{2, 1, c.grid.micro_batches / 2, "gpipe"}, same_norms};
}

std::vector<double> losses(const TrainingRun& run) {
  std::vector<double> all;
  for (const IterationRow& row : run.rows) all.push_back(row.loss);
  return all;
}

// Runs on the first ranks of the job; the others wait. Parameters are on rank 0.
TrainingRun run(const Graph& graph, const Plan& plan, int ranks, const RunSettings& s) {
  return on_ranks(ranks, graph, plan, SmallSource(graph, 800, 30), s);
}

TrainingRun run(const Graph& graph, const Grid& grid, const RunSettings& s) {
  return run(graph, make_plan(graph, grid), grid.ranks(), s);
}

double difference(const TrainingRun& a, const TrainingRun& b) {
  return std::max(row_difference(a, b), value_difference(a, b));
}

// All ranks follow rank 0's verdict, since the next run may be made because of it.
bool agreed(bool verdict) {
  int value = verdict ? 1 : 0;
  MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return value != 0;
}

class EqualityGrid : public ::testing::TestWithParam<Selection> {
 protected:
  /// By what they depend on.
  const TrainingRun& reference(const Graph& graph, const Grid& grid, const RunSettings& s, const std::string& what) {
    const auto key = std::make_tuple(what, grid.pipelines, grid.micro_batches, s.batch);
    if (!references_.contains(key)) references_[key] = run(graph, grid, s);
    return references_[key];
  }

  /// The largest difference to one rank of any step's loss or gradient norm, and of the parameters at the end, in
  /// double.
  double wide_difference(const Case& c, const std::string& optimizer) {
    const Graph graph = small_network(c.network);
    const RunSettings s = wide_settings(optimizer, batch_of(c));
    const TrainingRun split = run(graph, plan_of(c, graph), c.grid.ranks(), as_dealt(c, s));
    const TrainingRun& one = reference(graph, reference_of(c), s, c.network + optimizer);
    if (const std::optional<Whole> whole = unsplit(c)) {
      const TrainingRun& same = reference(graph, whole->grid, s, c.network + optimizer + " unsplit");
      if (world_rank() == 0) {
        EXPECT_TRUE(losses(split) == losses(same));
        EXPECT_LE(row_difference(split, same), whole->same_norms ? 0.0 : 1e-14);
        EXPECT_TRUE(split.values == same.values);
      }
    }
    return world_rank() == 0 ? difference(split, one) : 0;
  }

 private:
  std::map<std::tuple<std::string, int, std::int64_t, std::int64_t>, TrainingRun> references_;
};

// Stages alone change no bit. AdamW divides gradients that are zero but for rounding by themselves.
TEST_P(EqualityGrid, EqualsOneRankInDouble) {
  for (const Case& c : cases(GetParam())) {
    SCOPED_TRACE(text_of(c));
    EXPECT_LT(wide_difference(c, c.optimizer), c.optimizer == "sgd" ? 1e-9 : 1e-5);
  }
}

// In single precision a pre-activation within rounding of zero may take the other side of a ReLU, which moves one
// step's gradient by more than rounding. Such a case counts as equal only if the same training in double agrees to
// 1e-9. In bf16 sums in another order may round to another number of eight bits.
TEST_P(EqualityGrid, OptimisedKernelsEqualOneRankWithinRounding) {
  for (const Case& c : cases(GetParam())) {
    SCOPED_TRACE(text_of(c));
    const Graph graph = network_for(c);
    const RunSettings s = optimised_settings(c, graph);
    const TrainingRun split = run(graph, plan_of(c, graph), c.grid.ranks(), as_dealt(c, s));
    const TrainingRun& one = reference(graph, reference_of(c), s, c.network + c.kernels);
    const double rounding = world_rank() == 0 ? difference(split, one) : 0;
    if (agreed(rounding < 1e-5)) continue;
    EXPECT_LT(rounding, 1e-3);
    if (c.kernels != "bf16") {
      EXPECT_LT(wide_difference(c, "sgd"), 1e-9);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pairwise, EqualityGrid, ::testing::Values(Selection::pairwise));
INSTANTIATE_TEST_SUITE_P(Full, EqualityGrid, ::testing::Values(Selection::full));

}  // namespace
}  // namespace millrace::testing
