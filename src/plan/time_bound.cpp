// Sums work once, then looks at every number of pipelines and stages that the problem leaves open.
#include "plan/time_bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "graph/footprint.h"
#include "plan/closed_form.h"
#include "plan/device_kinds.h"

namespace millrace::plan {
namespace {

constexpr std::size_t kMostKinds = 16;

class Times {
 public:
  Times(const Problem& problem, Judge judge)
      : problem_(problem),
        judge_(judge),
        devices_(problem.cluster->size()),
        batch_(static_cast<double>(problem.batch)),
        micro_batches_(static_cast<double>(problem.micro_batches)) {
    measure();
    if (reduces()) measure_reduction();
  }

  // Least over the shapes that are left open. Fill and the largest operator do not fall with the number of stages, and
  // only one stage reduces everything, so 1 and 2 stages stand for all.
  Bound iteration() const {
    return least_over_shapes([this](int pipelines, int stages) {
      return largest({work(), largest_operator(pipelines, stages), fill(pipelines, stages), reduction(stages)});
    });
  }

  Bound steady() const {
    return least_over_shapes([this](int pipelines, int stages) {
      return largest({work(), largest_operator(pipelines, stages)});
    });
  }

 private:
  struct Speed {
    double speed = 0;  // 1: the fastest on every operator
    int count = 0;
  };

  static Bound largest(std::initializer_list<Bound> bounds) {
    return std::max(bounds, [](const Bound& a, const Bound& b) { return a.value < b.value; });
  }

  template <class OfShape>
  Bound least_over_shapes(const OfShape& of_shape) const {
    std::optional<Bound> least;
    const int first = problem_.pipelines.value_or(1), last = problem_.pipelines.value_or(devices_);
    for (int pipelines = first; pipelines <= last; ++pipelines) {
      const auto most = static_cast<int>(std::min<std::int64_t>(devices_ / pipelines, problem_.graph->size()));
      for (int stages = problem_.stages.value_or(1); stages <= problem_.stages.value_or(std::min(2, most)); ++stages) {
        if (stages > most) break;  // no such plan
        Bound bound = of_shape(pipelines, stages);
        if (!least || bound.value < least->value) least = std::move(bound);
      }
    }
    return least.value_or(work());
  }

  // Time of all rows on the best device for each operator, and the best speed that each kind shows on any of them.
  // Rows are counted in micro-batches of the largest size that a pipeline can have: time per row only grows below it.
  void measure() {
    const std::int64_t others = (problem_.pipelines.value_or(1) - 1) * problem_.micro_batches;
    const std::int64_t rows =
        std::max<std::int64_t>(1, (problem_.batch - others + problem_.micro_batches - 1) / problem_.micro_batches);
    const std::vector<DeviceKind> kinds = device_kinds(*problem_.cluster, kMostKinds);
    for (const DeviceKind& kind : kinds) speeds_.push_back({0, kind.count});
    std::vector<double> times(kinds.size());
    for (OpId op = 0; op < problem_.graph->size(); ++op) {
      double fastest = INFINITY;
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        times[k] = problem_.cost->op_time(op, rows, kinds[k].device).total().value();
        fastest = std::min(fastest, times[k]);
      }
      work_per_row_ += fastest / static_cast<double>(rows);
      longest_per_row_ = std::max(longest_per_row_, fastest / static_cast<double>(rows));
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        speeds_[k].speed = std::max(speeds_[k].speed, times[k] > 0 ? fastest / times[k] : 1.0);
      }
    }
    std::sort(speeds_.begin(), speeds_.end(), [](const Speed& a, const Speed& b) { return a.speed < b.speed; });
    for (const Speed& kind : speeds_) total_speed_ += kind.speed * kind.count;
  }

  // Devices that share operators own parts: how much each of them sums is the split's to say.
  bool reduces() const { return problem_.stages.value_or(1) == 1 && problem_.tensor == nullptr; }

  void measure_reduction() {
    std::vector<int> all(static_cast<std::size_t>(devices_));
    std::iota(all.begin(), all.end(), 0);
    Bytes bytes;
    for (const auto ids : {problem_.graph->parameters(), problem_.graph->buffers()}) {
      for (const TensorId id : ids) bytes += tensor_bytes(problem_.graph->tensor(id), problem_.sizes.real);
    }
    if (bytes > Bytes(0)) all_reduce_ = problem_.cost->all_reduce_time(bytes, all).value();
  }

  double work_seconds() const { return batch_ * work_per_row_; }

  Bound work() const { return {total_speed_ > 0 ? work_seconds() / total_speed_ : 0.0, "work / speed"}; }

  // With one device for each other stage, a stage has at most devices − pipelines × stages + 1.
  Bound largest_operator(int pipelines, int stages) const {
    int left = devices_ - pipelines * stages + 1;
    double speed = 0;
    for (auto kind = speeds_.rbegin(); kind != speeds_.rend() && left > 0; ++kind) {
      speed += kind->speed * std::min(left, kind->count);
      left -= kind->count;
    }
    const double rows = std::ceil(batch_ / pipelines);  // of the pipeline that has most
    return {speed > 0 ? rows * longest_per_row_ / speed : 0.0, "largest operator"};
  }

  Bound fill(int pipelines, int stages) const {
    const ScheduleTraits& traits = schedule_traits(problem_.schedule);
    const auto form = traits.iteration_time;
    const bool shares_devices = traits.kept_together != nullptr || traits.shared_fill != nullptr;
    const bool counted =
        judge_ == Judge::closed_form && !shares_devices && (form == gpipe_time || form == one_f_one_b_time);
    if (!counted || stages < 2) return {};
    const double p = stages, lost = pipelines * p * (p - 1) / (micro_batches_ + p - 1) * speeds_.front().speed;
    return {total_speed_ > lost ? work_seconds() / (total_speed_ - lost) : 0.0, "pipeline fill"};
  }

  Bound reduction(int stages) const {
    if (stages > 1 || devices_ < 2 || !reduces()) return {};
    // The first bucket may start within the backward of the last micro-batch, which is never the longest one.
    const double before = judge_ == Judge::closed_form ? 1.0 : (micro_batches_ - 1) / micro_batches_;
    return {before * work().value + all_reduce_, "work / speed, then the reduction of all gradients"};
  }

  const Problem& problem_;
  Judge judge_;
  int devices_;
  double batch_;
  double micro_batches_;
  double work_per_row_ = 0;
  double longest_per_row_ = 0;
  double total_speed_ = 0;
  std::vector<Speed> speeds_;  // ascending
  double all_reduce_ = 0;      // of everything over all devices, s
};

}  // namespace

Bound iteration_bound(const Problem& problem, Judge judge) { return Times(problem, judge).iteration(); }

Bound steady_bound(const Problem& problem) { return Times(problem, Judge::closed_form).steady(); }

}  // namespace millrace::plan
