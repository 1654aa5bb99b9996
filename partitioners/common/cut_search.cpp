// Chooses the method by the number of states, and the cut points by what the method can take.
#include "partitioners/common/cut_search.h"

#include <algorithm>
#include <cmath>

#include "partitioners/common/even_cut.h"
#include "partitioners/common/label_dp.h"
#include "partitioners/common/priced_search.h"

namespace millrace::partitioners {
namespace {

constexpr double kSmallStages = 1e5;  // looked at by the exact program without any bound
constexpr double kMostStages = 3e5;   // with the bound of a cut that is good already, and few labels of each state
constexpr std::size_t kLabels = 6;
constexpr double kMostStates = 600;     // numbers of devices
constexpr std::size_t kFewPlaces = 48;  // of fewer the exact program would see too little
constexpr std::size_t kFinePlaces = 8192;
constexpr double kMostCrossings = 2e6;  // of tensors with places

OrderCut in_positions(PipelineCut cut, const Points& points, Score score, bool exact) {
  for (CutStage& stage : cut.stages) stage.end = points[stage.end];
  return {std::move(cut), score, exact, points};
}

// Ends of stages as numbers of points. \pre they are among them.
PipelineCut in_items(PipelineCut cut, const Points& points) {
  for (CutStage& stage : cut.stages) {
    stage.end = static_cast<std::size_t>(std::lower_bound(points.begin(), points.end(), stage.end) - points.begin());
  }
  return cut;
}

}  // namespace

CutSearch::CutSearch(const plan::Problem& problem, double thinning, Deadline deadline)
    : problem_(&problem), thinning_(thinning), deadline_(deadline), op_times_(problem) {
  // As plan::device_speeds(), from the columns that are needed anyway.
  const cluster::Cluster& cluster = *problem.cluster;
  std::vector<double> alone(static_cast<std::size_t>(cluster.size()), 0.0);
  double least = std::numeric_limits<double>::infinity();
  for (int device = 0; device < cluster.size(); ++device) {
    const int alike = cluster.first_alike(device);
    double& time = alone[static_cast<std::size_t>(device)];
    if (alike < device) {
      time = alone[static_cast<std::size_t>(alike)];
      continue;
    }
    const OpTimes::Scaled times = op_times_.of(device, problem.micro_batch_rows(1));
    for (const double total : times.column->total) time += times.scale * total;
    least = std::min(least, time);
  }
  for (const double time : alone) speeds_.push_back(time > 0 ? least / time : 1.0);
}

PipelineModel CutSearch::model(Cutting& cutting, const DeviceDeal& deal, CutRules rules) {
  return PipelineModel(*problem_, cutting.segments, deal, op_times_, cutting.sums, speeds_, rules);
}

bool CutSearch::small(const Sequence& sequence, const DeviceDeal& deal) const {
  return LabelDp::states(deal) <= kMostStates && LabelDp::stages(deal, sequence.places().count()) <= kSmallStages;
}

std::size_t CutSearch::most_places(const Sequence& sequence) const {
  constexpr double kLeast = 64;
  const double room = kMostCrossings / std::max(1.0, sequence.places().width());
  return static_cast<std::size_t>(std::clamp(room, kLeast, static_cast<double>(kFinePlaces)));
}

// Eight places for each stage where their number is known or follows from micro-batches that cannot be split.
std::size_t CutSearch::coarse_places(const Sequence& sequence, const DeviceDeal& deal, bool rough) const {
  const std::size_t least = rough ? 96 : 256;
  const auto devices = static_cast<std::size_t>(problem_->devices_per_pipeline(deal.pipelines()));
  const bool replicas = problem_->micro_batch_rows(deal.pipelines()) > 1;
  const std::size_t stages = problem_->stages ? static_cast<std::size_t>(*problem_->stages) : replicas ? 1 : devices;
  return std::min(std::max(least, 8 * stages), most_places(sequence));
}

std::optional<OrderCut> CutSearch::label(Cutting& cutting, const DeviceDeal& deal, CutRules rules, Score bound,
                                         double slack, std::size_t width) {
  PipelineModel on = model(cutting, deal, rules);
  constexpr std::int64_t kStepsForEach = 8;
  LabelDp::Limits limits{problem_->stages, slack, width, kStepsForEach * static_cast<std::int64_t>(kMostStages),
                         deadline_};
  LabelDp dp(on, problem_->objective, limits);
  const auto cut = dp.best(bound);
  if (!cut) {
    if (!dp.complete() || bound.first == std::numeric_limits<double>::infinity()) return std::nullopt;
    return OrderCut{{}, bound, true, {}};  // what is known is the best
  }
  return in_positions(*cut, cutting.segments.points(), score(problem_->objective, cut->figures, on), dp.complete());
}

std::optional<OrderCut> CutSearch::estimate(Sequence& sequence, const DeviceDeal& deal, CutRules rules, bool rough) {
  if (small(sequence, deal)) {
    const auto exact = label(sequence.cheapest(sequence.places().count()), deal, rules, Score{}, 0, 0);
    if (exact && exact->exact) return exact;
  }
  // More places where there turn out to be many stages.
  constexpr std::size_t kPlacesOfAStage = 4;
  for (std::size_t most = coarse_places(sequence, deal, rough);; most *= 4) {
    Cutting& cutting = sequence.cheapest(most);
    PipelineModel on = model(cutting, deal, rules);
    PricedSearch search(on, problem_->objective, {problem_->stages, deadline_});
    const auto cut = search.best(rough ? 0.25 : 0.1);
    if (!cut) return std::nullopt;
    const bool enough = cut->stages.size() * kPlacesOfAStage < cutting.segments.items();
    if (enough || most >= std::min(most_places(sequence), sequence.places().count()) || late(deadline_)) {
      return in_positions(*cut, cutting.segments.points(), score(problem_->objective, cut->figures, on), false);
    }
  }
}

OrderCut CutSearch::refine(Sequence& sequence, const DeviceDeal& deal, CutRules rules, OrderCut known) {
  known = improved(sequence, deal, rules, std::move(known));
  // Among few of the places there is no tie to speak of, and fuller devices would count against memory efficiency.
  const bool all_places = known.points.size() > sequence.places().count();
  if (!all_places || late(deadline_) || problem_->objective == plan::Objective::memory_efficiency) return known;
  const std::unique_ptr<Cutting> cutting = sequence.at(known.points);
  PipelineModel on = model(*cutting, deal, rules);
  PipelineCut cut = in_items(known.cut, known.points);
  even_out(on, problem_->objective, cut);
  const Score value = score(problem_->objective, cut.figures, on);
  return in_positions(std::move(cut), known.points, value, known.exact);
}

OrderCut CutSearch::improved(Sequence& sequence, const DeviceDeal& deal, CutRules rules, OrderCut known) {
  if (known.exact || late(deadline_)) return known;
  finer(sequence, deal, rules, known);
  // Prices do not reach every number of devices: where these are few, each has a state of its own.
  const auto places = static_cast<std::size_t>(std::sqrt(kMostStages / LabelDp::stages(deal, 1)));
  const bool few = places < std::min(kFewPlaces, sequence.places().count());
  if (few || LabelDp::states(deal) > kMostStates || late(deadline_)) return known;
  const auto found = label(sequence.cheapest(places), deal, rules, known.score, thinning_, kLabels);
  if (!found || found->cut.stages.empty() || found->score >= known.score) return known;
  known = *found;
  if (known.points.size() <= sequence.places().count()) finer(sequence, deal, rules, known);
  return known;
}

// Looks around what is known among the places where it was found, and divides the places near the ends of its stages
// again and again.
void CutSearch::finer(Sequence& sequence, const DeviceDeal& deal, CutRules rules, OrderCut& known) {
  constexpr int kRounds = 5;
  constexpr double kStep = 0.03;
  const std::size_t most = std::min(std::max<std::size_t>(16 * known.cut.stages.size(), 512), most_places(sequence));
  Points points = known.points;
  for (int round = 0; round < kRounds && !late(deadline_); ++round) {
    const std::unique_ptr<Cutting> cutting = sequence.at(points);
    PipelineModel on = model(*cutting, deal, rules);
    PricedSearch search(on, problem_->objective, {problem_->stages, deadline_, true});
    const PipelineCut start = in_items(known.cut, points);
    if (round > 0) search.narrow(start);
    const double least = std::max(thinning_, 1e-3);
    const PipelineCut cut = search.around(start, round > 0 ? least : kStep, least);
    const Score value = score(problem_->objective, cut.figures, on);
    const bool better = value < known.score;
    if (better) known = in_positions(cut, points, value, false);
    if (points.size() > sequence.places().count()) return;
    std::vector<std::size_t> centres;
    for (const CutStage& stage : in_items(known.cut, points).stages) centres.push_back(stage.end);
    centres.pop_back();
    if (centres.empty()) return;
    Points nearer = sequence.places().near(points, centres, most);
    if (nearer == points) return;
    points = std::move(nearer);
  }
}

}  // namespace millrace::partitioners
