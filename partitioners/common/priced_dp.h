// The dynamic program with a price on devices, for orders and clusters that are too large for one state per number of
// devices (TECHNIQUES, "Dynamic program at 100,000 operators × 1,024 devices").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "partitioners/common/pipeline_cut.h"

namespace millrace::partitioners {

/// Under a bound t on the slowest stage and a bound ρ on the reduction that is exposed, takes the cut of least
/// Σc + price · devices, and looks for the price at which the devices suffice. A stage takes devices of one queue. Runs
/// from the first item: a segment that is too long for a bound stays so as it grows, so candidates that fail are
/// dropped for good. Good cuts, no proof: prices reach only some numbers of devices.
class PricedDp {
 public:
  struct Bounds {
    double slowest = 0;  ///< seconds
    double exposed = 0;
  };
  struct Prices {
    std::vector<double> device;  ///< by queue
    double stage = 0;
  };
  struct Outcome {
    PipelineCut cut;
    Counts used;       ///< devices; may be more than there are
    double least = 0;  ///< Σc, or bytes, of the cut, without prices
  };

  /// `growth`: about the factor between numbers of replicas that are tried.
  PricedDp(PipelineModel& model, plan::Objective objective, double growth);

  /// The cut of least cost with prices; none: no cut keeps the bounds. `stages`: about how many there will be, from
  /// which follow the live micro-batches.
  std::optional<Outcome> solve(const Bounds& bounds, const Prices& prices, std::int64_t stages);

  /// From here on stages have as many replicas as one of these, or as its neighbours.
  void narrow(const std::vector<CutStage>& stages);

 private:
  struct Option {  // devices of one queue, taken by a stage
    std::size_t queue = 0;
    int replicas = 1;
    bool recompute = false;
    int inside = 0;  // groups: with the stage before on the same node, and on another
    int across = 0;
    std::vector<double> weight;   // what items before each cut point add to what is minimised
    std::vector<double> compute;  // their seconds
    std::vector<double> forward;
  };
  struct Waiting {   // a place where a stage may begin
    double key = 0;  // what a stage from here costs at least, less the weight up to its end
    std::uint32_t begin = 0;
    std::int32_t group = 0;
    bool operator<(const Waiting& other) const { return key > other.key; }  // smallest on top of a heap
  };
  void add_options(std::size_t queue, const std::vector<int>& replicas);
  std::vector<int> replica_counts(std::size_t queue, double growth) const;
  std::vector<double> traffic_sums(int group) const;
  int group_at(const Option& option, std::size_t begin) const;
  double passing(int group, std::size_t begin, std::size_t end) const;
  void reach(std::size_t end, const Bounds& bounds, const Prices& prices);
  const Waiting* take(std::size_t option, std::size_t end, const Bounds& bounds);
  void wait(std::size_t option, std::size_t begin);
  bool fits(const Option& option, int group, std::size_t begin, std::size_t end) const;
  Outcome trace() const;

  PipelineModel* model_;
  plan::Objective objective_;
  std::size_t items_;
  std::vector<Option> options_;
  std::vector<std::vector<Waiting>> waiting_;  // by option; heaps
  std::vector<Waiting> aside_;
  Waiting taken_;
  // By cut point: the best way to cut what is before it.
  std::vector<double> value_, backward_;
  std::vector<std::int32_t> depth_, from_, option_;
  std::vector<int> used_;  // queue by queue
  std::int64_t stages_ = 1;
};

}  // namespace millrace::partitioners
