// Cuts one order for one deal of devices: exactly where that is little work, else from coarse to fine.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "partitioners/common/pipeline_cut.h"
#include "partitioners/common/sequence.h"

namespace millrace::partitioners {

/// A cut of an order; ends of stages are positions in it.
struct OrderCut {
  PipelineCut cut;
  Score score{};
  bool exact = false;  ///< no cut of this order and deal is better, by the model
  Points points{};     ///< places that were looked at
};

class CutSearch {
 public:
  /// `problem` must outlive it. `thinning`: relative; what is better by less may be missed in what is not small.
  CutSearch(const plan::Problem& problem, double thinning, Deadline deadline);

  const std::vector<double>& speeds() const { return speeds_; }  ///< of devices, plan::device_speeds()
  /// Of operators on the first device, for the longest micro-batch of one pipeline.
  std::span<const double> times() { return op_times_.of(0, problem_->micro_batch_rows(1)).column->total; }

  /// A good cut, soon; exact for small problems. `rough`: good enough to compare orders and numbers of pipelines. None:
  /// nothing fits, or the deadline passed.
  std::optional<OrderCut> estimate(Sequence& sequence, const DeviceDeal& deal, CutRules rules, bool rough = false);

  /// A better one where there is, or one as good of more even stages (the tie-break of plan::better()); `known` was
  /// found for the same sequence, deal and rules.
  OrderCut refine(Sequence& sequence, const DeviceDeal& deal, CutRules rules, OrderCut known);

 private:
  PipelineModel model(Cutting& cutting, const DeviceDeal& deal, CutRules rules);
  bool small(const Sequence& sequence, const DeviceDeal& deal) const;
  std::size_t coarse_places(const Sequence& sequence, const DeviceDeal& deal, bool rough) const;
  std::size_t most_places(const Sequence& sequence) const;
  std::optional<OrderCut> label(Cutting& cutting, const DeviceDeal& deal, CutRules rules, Score bound, double slack,
                                std::size_t width);
  OrderCut improved(Sequence& sequence, const DeviceDeal& deal, CutRules rules, OrderCut known);
  void finer(Sequence& sequence, const DeviceDeal& deal, CutRules rules, OrderCut& known);

  const plan::Problem* problem_;
  double thinning_;
  Deadline deadline_;
  OpTimes op_times_;
  std::vector<double> speeds_;
};

}  // namespace millrace::partitioners
