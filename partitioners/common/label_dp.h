// The dynamic program over items and devices (METHODS 6, `dp`) with all values that matter kept apart: exact on the
// model where it is let run to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "partitioners/common/pipeline_cut.h"

namespace millrace::partitioners {

/// A state is a suffix of the items and the devices that it uses; a label is one way to cut that suffix. Labels that
/// another beats whatever comes before them are dropped, and those that cannot beat the best cut known.
class LabelDp {
 public:
  struct Limits {
    std::optional<int> stages{};   ///< exactly so many; none: any number
    double slack = 0;              ///< relative: cuts that are better by less may be missed
    std::size_t width = 0;         ///< labels kept of each state, the most promising; 0: all
    std::int64_t steps = 1 << 30;  ///< pairs of a label and a stage before it that are looked at
    Deadline deadline{};
  };

  /// \pre devices of the model have at most most_states() counts.
  LabelDp(PipelineModel& model, plan::Objective objective, Limits limits);

  static double states(const DeviceDeal& deal);
  /// About how many stages it would look at: for each of its states, those before it.
  static double stages(const DeviceDeal& deal, std::size_t items);

  /// The best cut that scores better than `bound` and uses all devices; none: there is none, or it was not found.
  std::optional<PipelineCut> best(Score bound);

  /// Whether the limits left nothing out: what it answered is exact on the model.
  bool complete() const { return complete_; }

 private:
  struct Label {
    CutFigures figures{};
    std::int32_t parent = -1;
    std::int32_t state = 0;
    std::uint32_t begin = 0;
    std::int32_t depth = 0;  // stages
    bool recompute = false;
  };
  using List = std::vector<std::int32_t>;

  List& list(std::size_t state, std::size_t begin) { return lists_[state * (items_ + 1) + begin]; }
  struct Move {  // a stage in front of the suffixes of another state
    std::size_t from = 0;
    int group = 0;
  };

  std::vector<Move> moves(std::size_t state);
  void visit(std::size_t state, std::size_t begin, const std::vector<Move>& moves, const Counts& left);
  void extend(std::size_t state, std::size_t begin, const Move& move, double rest);
  void stage(std::size_t state, std::size_t begin, std::size_t from, std::size_t end, int group, double rest);
  void insert(std::size_t state, const Label& label);
  bool dominates(const Label& a, const Label& b) const;
  Score least(const CutFigures& figures, double rest) const;
  double longest_stage(double rest) const;
  void trim(List& list, double rest);
  PipelineCut trace(std::int32_t label) const;
  bool stop();

  PipelineModel* model_;
  plan::Objective objective_;
  Limits limits_;
  std::size_t items_;
  double steady_;             // m − 1
  std::vector<Counts> used_;  // by state
  std::vector<int> left_;     // by state: devices, for the stages before
  std::vector<Label> labels_;
  std::vector<List> lists_;
  Score bound_{};
  double allowed_ = 0;  // seconds: slack
  double least_slowest_ = 0;
  std::int32_t deepest_ = 1;  // stages behind from which on no more micro-batches are alive
  std::int32_t best_ = -1;
  std::int64_t steps_ = 0;
  bool complete_ = true;
  bool stopped_ = false;
};

}  // namespace millrace::partitioners
