// Looks for the bounds and prices under which PricedDp answers the best cut (METHODS 6: for each candidate bottleneck
// the least Σc; TECHNIQUES: coarse to fine).
#pragma once

#include <optional>

#include "partitioners/common/priced_dp.h"

namespace millrace::partitioners {

class PricedSearch {
 public:
  struct Limits {
    std::optional<int> stages{};  ///< exactly so many; none: any number
    Deadline deadline{};
    bool fine = false;  ///< more numbers of replicas, and prices nearer to what uses all devices
  };

  PricedSearch(PipelineModel& model, plan::Objective objective, Limits limits);

  /// The best cut found over all bounds, in steps of `step` (relative). Uses all devices; none where nothing fits.
  std::optional<PipelineCut> best(double step);

  /// Stages keep about as many replicas as those of `cut` have.
  void narrow(const PipelineCut& cut) { dp_.narrow(cut.stages); }

  /// The best found around `known`, a cut of the model's items, in steps from `step` down to `least_step`. `known`
  /// itself where none is better.
  PipelineCut around(const PipelineCut& known, double step, double least_step);

 private:
  struct Resource {  // devices of a queue, or stages, and what one costs
    double price = 0;
    double too_low = 0;
    double enough = 0;  // 0: not known yet
  };

  bool late() const { return partitioners::late(limits_.deadline); }
  double start_price() const;
  std::optional<PipelineCut> within(const PricedDp::Bounds& bounds);
  void adjust(Resource& resource, bool enough) const;
  std::optional<PipelineCut> complete(PricedDp::Outcome outcome);
  bool descend(double exposed, double from, double step, double until);
  bool split(PipelineCut& cut, Counts& left) const;
  void hand_out(PipelineCut& cut, Counts& left);
  void keep(const PipelineCut& cut);

  PipelineModel* model_;
  plan::Objective objective_;
  Limits limits_;
  PricedDp dp_;
  std::vector<double> work_;    // at the cut points: what is minimised, on one device
  std::vector<double> prices_;  // of the queues and of a stage, that sufficed last
  std::int64_t stages_ = 1;     // of the last cut
  std::optional<PipelineCut> best_;
  Score score_{};
};

}  // namespace millrace::partitioners
