// Operator times from a measured profile, for any number of rows and any device of a cluster.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "cost/cost_model.h"
#include "cost/profile.h"

namespace millrace::cost {

/// Layers that make their weight gradient once for the whole batch, however many micro-batches it has: each row costs its
/// part of that.
struct FactoredLayers {
  std::vector<OpId> layers;
  std::int64_t batch = 1;
};

/// The profile is that of a device of speed 1: a device takes its medians over the device's speed. Between two measured
/// numbers of rows times lie on a line, outside of them they grow with the rows. Noise that makes a larger micro-batch
/// cheaper, or a row of it dearer, is taken out first, since bounds rest on neither happening (CostModel). Then the
/// operators of a pass over the longest micro-batch take together what the whole pass took. Messages take what the
/// cluster's links say, reductions their closed form times what the job's own sums took of it.
class MeasuredCost : public CostModel {
 public:
  /// `cluster` must outlive it. \pre the profile is of `graph` (why_not_usable) and has a size.
  MeasuredCost(const Profile& profile, const cluster::Cluster& cluster, const FactoredLayers& factored = {});

  OpTime op_time(OpId op, std::int64_t rows, int device) const override;
  Seconds transfer_time(Bytes amount, int from, int to) const override;
  Seconds all_reduce_time(Bytes amount, std::span<const int> devices) const override;
  /// All measured steps over all their bytes.
  std::optional<Seconds> update_time(Bytes amount, int device) const override;

 private:
  enum Pass : std::uint8_t { kForward, kBackwardInput, kBackwardWeight, kPasses };
  void take_whole_passes(const MeasuredSize& longest);
  double seconds(OpId op, Pass pass, double rows) const;
  double reduction_factor(double bytes) const;

  const cluster::Cluster* cluster_;
  std::vector<double> rows_;                                     // measured, ascending
  std::vector<std::array<std::vector<double>, kPasses>> times_;  // by operator, pass and measured size
  double update_per_byte_ = 0;
  std::vector<std::pair<double, double>> reduction_factors_;  // by bytes, ascending
};

}  // namespace millrace::cost
