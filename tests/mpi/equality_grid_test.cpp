// Any synchronous plan gives the gradients of one rank: pipelines × stages × micro-batches × schedules × networks in
// one launch. Pairwise: a selection in which every pair of values meets; Full: every combination.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "program/stage_dag.h"
#include "schedules/registry.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/training_run.h"

namespace millrace::testing {
namespace {

// Batch norm needs the same micro-batches on one rank: 720 divides by every pipelines × micro-batches of the grid.
constexpr std::int64_t kBatchNormBatch = 720;
constexpr std::int64_t kBatch = 59;  // divides by none
constexpr std::int64_t kSteps = 20;
const std::vector<std::int64_t> kMicroBatches{1, 2, 3, 5, 8};

struct Case {
  std::string network;
  Grid grid;
};

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& entry : schedules::registry()) {
    if ((entry.capabilities & schedules::kSynchronous) != 0) names.push_back(entry.name);
  }
  return names;
}

// Some schedules take some numbers of stages and micro-batches only (METHODS 2); stages must not be empty.
bool allowed(const Case& c, const Graph& graph) {
  const schedules::Placement placement = schedules::by_name(c.grid.schedule).placement;
  const bool two = placement == schedules::Placement::in_turn || placement == schedules::Placement::vee;
  if (two && 2 * c.grid.stages > graph.size()) return false;
  if (placement == schedules::Placement::both_ways && c.grid.micro_batches % 2 != 0) return false;
  try {
    const Plan plan = make_plan(graph, c.grid);
    schedules::compute_order(plan, make_stage_dag(graph, plan));
  } catch (const InvalidInput&) {
    return false;
  }
  return true;
}

constexpr Recompute kRecomputes[] = {Recompute::none, Recompute::all, Recompute::all_but_last, Recompute::chosen};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& network : small_networks()) {
    const Graph graph = small_network(network);
    for (int stages = 1; stages <= 4; ++stages) {
      for (const std::int64_t m : kMicroBatches) {
        for (const std::string& schedule : schedule_names()) {
          if (!allowed({network, {1, stages, m, schedule}}, graph))
            continue;  // pipelines and recomputation change nothing
          for (int pipelines = 1; pipelines <= 3; ++pipelines) {
            for (const Recompute recompute : kRecomputes) {
              cases.push_back({network, {pipelines, stages, m, schedule, recompute}});
            }
          }
        }
      }
    }
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
                                        std::to_string(static_cast<int>(c.grid.recompute))};
  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < values.size(); ++a) {
    for (std::size_t b = a + 1; b < values.size(); ++b) {
      pairs.emplace_back(static_cast<int>(a), values[a], static_cast<int>(b), values[b]);
    }
  }
  return pairs;
}

// Greedy covering: the case with the most pairs not yet met comes next.
std::vector<Case> pairwise_cases() {
  const std::vector<Case> all = all_cases();
  std::map<Pair, std::size_t> number;
  std::vector<std::vector<std::size_t>> pairs;  // by case
  for (const Case& c : all) {
    std::vector<std::size_t>& its = pairs.emplace_back();
    for (const Pair& pair : pairs_of(c)) its.push_back(number.try_emplace(pair, number.size()).first->second);
  }
  std::vector<bool> met(number.size(), false);
  const auto fresh = [&](const std::vector<std::size_t>& its) {
    return std::count_if(its.begin(), its.end(), [&](std::size_t pair) { return !met[pair]; });
  };
  std::vector<Case> chosen;
  for (;;) {
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) { return fresh(a) < fresh(b); });
    if (fresh(*best) == 0) return chosen;
    for (const std::size_t pair : *best) met[pair] = true;
    chosen.push_back(all[static_cast<std::size_t>(best - pairs.begin())]);
  }
}

enum class Selection { pairwise, full };

// Chosen once for all tests: twelve ranks do it on few cores.
const std::vector<Case>& cases(Selection selection) {
  static const std::vector<Case> chosen = selection == Selection::full ? all_cases() : pairwise_cases();
  return chosen;
}

RunSettings settings(const std::string& kernels, kernels::Precision precision, runtime::OptimizerKind optimizer) {
  RunSettings s;
  s.train.iterations = kSteps;
  s.train.kernels = kernels;
  s.train.precision = precision;
  s.train.optimizer.kind = optimizer;
  s.train.optimizer.learning_rate = optimizer == runtime::OptimizerKind::sgd ? 0.01 : 1e-3;
  s.train.optimizer.momentum = optimizer == runtime::OptimizerKind::sgd ? 0.9 : 0.0;
  s.train.optimizer.weight_decay = 0.01;
  return s;
}

class EqualityGrid : public ::testing::TestWithParam<Selection> {
 protected:
  // Runs the case on the first ranks of the job; the others wait. Parameters are on rank 0.
  static TrainingRun run(const Graph& graph, const Grid& grid, RunSettings s) {
    s.batch = graph.buffers().empty() ? kBatch : kBatchNormBatch;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    TrainingRun result;
    const SmallSource source(graph, 800, 30);
    if (grid.ranks() == 1) {
      if (rank == 0) result = train(graph, make_plan(graph, grid), source, s, MPI_COMM_SELF);
    } else {
      MPI_Comm part = MPI_COMM_NULL;
      MPI_Comm_split(MPI_COMM_WORLD, rank < grid.ranks() ? 0 : MPI_UNDEFINED, rank, &part);
      if (part != MPI_COMM_NULL) {
        result = train(graph, make_plan(graph, grid), source, s, part);
        MPI_Comm_free(&part);
      }
    }
    patient_barrier();
    return result;
  }

  static bool root() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
  }

  // The one-rank run that a case is held against: batch norm normalises within micro-batches, so they are the same.
  static Grid reference_of(const Case& c) {
    const bool batch_norm = c.network == "resnet";
    return {1, 1, batch_norm ? c.grid.pipelines * c.grid.micro_batches : 1, "gpipe"};
  }

  // The largest difference of any step's loss or gradient norm, and of the parameters at the end; on rank 0.
  double difference(const Case& c, const RunSettings& s) {
    const Graph graph = small_network(c.network);
    const Grid one = reference_of(c);
    const auto key = std::make_tuple(c.network, one.micro_batches, s.train.precision);
    if (!references_.contains(key)) references_[key] = run(graph, one, s);
    const TrainingRun split = run(graph, c.grid, s);
    if (!root()) return 0;
    return std::max(row_difference(split, references_[key]), value_difference(split, references_[key]));
  }

 private:
  std::map<std::tuple<std::string, std::int64_t, kernels::Precision>, TrainingRun> references_;
};

// All ranks follow rank 0's verdict, since the next case may be run because of it.
bool agreed(bool verdict) {
  int value = verdict ? 1 : 0;
  MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return value != 0;
}

std::string text_of(const Case& c) {
  return fmt::format("{}: {} pipelines x {} stages x {} micro-batches, {}, recompute {}", c.network, c.grid.pipelines,
                     c.grid.stages, c.grid.micro_batches, c.grid.schedule, static_cast<int>(c.grid.recompute));
}

// In single precision a pre-activation within rounding of zero may take the other side of a ReLU, which moves one
// step's gradient by more than rounding. Such a case counts as equal only if the same training in double agrees to
// 1e-9.
TEST_P(EqualityGrid, SgdEqualsOneRankWithinRounding) {
  const RunSettings single = settings("auto", kernels::Precision::fp32, runtime::OptimizerKind::sgd);
  const RunSettings wide = settings("reference", kernels::Precision::fp64, runtime::OptimizerKind::sgd);
  for (const Case& c : cases(GetParam())) {
    SCOPED_TRACE(text_of(c));
    const double rounding = difference(c, single);
    if (agreed(rounding < 1e-5)) continue;
    EXPECT_LT(rounding, 1e-3);
    EXPECT_LT(difference(c, wide), 1e-9);
  }
}

TEST_P(EqualityGrid, AdamWEqualsOneRankInDouble) {
  const RunSettings wide = settings("reference", kernels::Precision::fp64, runtime::OptimizerKind::adamw);
  for (const Case& c : cases(GetParam())) {
    SCOPED_TRACE(text_of(c));
    EXPECT_LT(difference(c, wide), 1e-5);
  }
}

// The same pipelines with one stage each. Two pipelines that run both ways share devices, so a tied parameter or
// several groups add up in another order: those are equal within rounding only.
std::optional<Grid> unsplit(const Case& c) {
  const bool both_ways = schedules::by_name(c.grid.schedule).placement == schedules::Placement::both_ways;
  if (!both_ways) return Grid{c.grid.pipelines, 1, c.grid.micro_batches, "gpipe"};
  if (c.grid.pipelines > 1 || c.network == "gpt") return std::nullopt;
  return Grid{2, 1, c.grid.micro_batches / 2, "gpipe"};
}

TEST_P(EqualityGrid, StagesAloneChangeNoBit) {
  const RunSettings s = settings("reference", kernels::Precision::fp32, runtime::OptimizerKind::sgd);
  std::map<std::tuple<std::string, int, std::int64_t>, TrainingRun> known;
  for (const Case& c : cases(GetParam())) {
    const std::optional<Grid> whole = unsplit(c);
    if (c.grid.stages == 1 || !whole) continue;
    const Graph graph = small_network(c.network);
    const auto key = std::make_tuple(c.network, whole->pipelines, whole->micro_batches);
    if (!known.contains(key)) known[key] = run(graph, *whole, s);
    const TrainingRun split = run(graph, c.grid, s);
    if (!root()) continue;
    SCOPED_TRACE(text_of(c));
    EXPECT_EQ(row_difference(split, known[key]), 0.0);
    EXPECT_EQ(split.values, known[key].values);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairwise, EqualityGrid, ::testing::Values(Selection::pairwise));
INSTANTIATE_TEST_SUITE_P(Full, EqualityGrid, ::testing::Values(Selection::full));

}  // namespace
}  // namespace millrace::testing
