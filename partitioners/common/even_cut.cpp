// Each move makes the sum of squares of the stages' times smaller, so that the search ends.
#include "partitioners/common/even_cut.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace millrace::partitioners {
namespace {

constexpr double kRelativeTie = 1e-12;  // as plan::better()
constexpr std::size_t kMostEvenStages = 32;

bool tied(double a, double b) { return std::abs(a - b) <= kRelativeTie * std::max(std::abs(a), std::abs(b)); }

class Evening {
 public:
  Evening(PipelineModel& model, plan::Objective objective, PipelineCut& cut)
      : model_(model), objective_(objective), cut_(cut), score_(score(objective, cut.figures, model)) {
    Counts behind(model.deal().queues(), 0);
    groups_.resize(cut.stages.size());
    for (std::size_t s = cut.stages.size(); s-- > 0;) {
      groups_[s] = model.group(behind, cut.stages[s].taken);
      for (std::size_t q = 0; q < behind.size(); ++q) behind[q] += cut.stages[s].taken[q];
    }
  }

  void run() {
    const PipelineCut before = cut_;
    const double spread_before = spread();
    const std::size_t stages = cut_.stages.size();
    bool moved = true;
    for (std::size_t pass = 0; moved && pass < 2 * stages; ++pass) {
      moved = false;
      for (std::size_t to = 0; to < stages; ++to) {
        for (std::size_t from = 0; from < stages; ++from) {
          if (from != to) moved = move(from, to) || moved;
        }
      }
    }
    if (spread() >= spread_before * (1 - kRelativeTie)) cut_ = before;
  }

 private:
  std::size_t begin_of(std::size_t s) const { return s > 0 ? cut_.stages[s - 1].end : 0; }

  // Compute alone, as plan::better() has it.
  double time(std::size_t s, std::size_t begin, std::size_t end) const {
    return model_.cost(groups_[s], begin, end, cut_.stages[s].recompute).total() -
           2 * model_.receive(groups_[s], begin, end);
  }

  double spread() const {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (std::size_t s = 0; s < cut_.stages.size(); ++s) {
      const double own = time(s, begin_of(s), cut_.stages[s].end);
      least = std::min(least, own);
      most = std::max(most, own);
    }
    return most - least;
  }

  bool recomputes_the_same(const PipelineCut& other) const {
    return std::equal(cut_.stages.begin(), cut_.stages.end(), other.stages.begin(),
                      [](const CutStage& a, const CutStage& b) { return a.recompute == b.recompute; });
  }

  // Stage `to` gets one item more and `from` one less: the ends between them all move by one item, if that is as good
  // and more even.
  bool move(std::size_t from, std::size_t to) {
    const std::size_t first = std::min(from, to), last = std::max(from, to);
    const auto squares = [&] {
      double sum = 0;
      for (std::size_t s = first; s <= last; ++s) {
        const double own = time(s, begin_of(s), cut_.stages[s].end);
        sum += own * own;
      }
      return sum;
    };
    if (cut_.stages[from].end - begin_of(from) < 2) return false;
    const double before = squares();
    const auto shift = [&](bool on) {
      for (std::size_t s = first; s < last; ++s) cut_.stages[s].end += on ? 1 : std::size_t{0} - 1;
    };
    shift(to < from);
    if (squares() < before * (1 - kRelativeTie) && is_as_good()) return true;
    shift(to > from);
    return false;
  }

  bool is_as_good() {
    PipelineCut changed = cut_;
    if (!assess(model_, changed) || !recomputes_the_same(changed)) return false;
    const Score value = score(objective_, changed.figures, model_);
    // Of equal bottlenecks and bytes, the time comes first.
    const bool time_first = objective_ != plan::Objective::throughput;
    if (!tied(value.first, score_.first) || (time_first && !tied(value.second, score_.second))) return false;
    cut_.figures = changed.figures;
    return true;
  }

  PipelineModel& model_;
  plan::Objective objective_;
  PipelineCut& cut_;
  Score score_;
  std::vector<int> groups_;
};

}  // namespace

void even_out(PipelineModel& model, plan::Objective objective, PipelineCut& cut) {
  if (cut.stages.size() < 2 || cut.stages.size() > kMostEvenStages) return;
  Evening(model, objective, cut).run();
}

}  // namespace millrace::partitioners
