// Row by row; sets are gathered as they come.
#include "planner/step_validation.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::planner {
namespace {

class Sets {
 public:
  SetErrors& of(const std::string& name) {
    const auto found = std::find_if(sets_.begin(), sets_.end(), [&](const SetErrors& s) { return s.set == name; });
    if (found != sets_.end()) return *found;
    sets_.push_back({name, 0, {}, {}});
    return sets_.back();
  }

  void add(const std::string& set, const MeasuredStep& row, double predicted, double measured) {
    SetErrors& errors = of(set);
    if (row.calibration) {
      ++errors.calibration;
      return;
    }
    const Layout& layout = row.layout;
    const std::string model = fmt::format("{} layers of {}", layout.model.layers, layout.model.hidden);
    const std::string job = fmt::format("{} on {}, batch {}, recompute {}", model, layout.devices(),
                                        layout.global_batch, static_cast<int>(layout.recompute));
    const double flops = row.time_s ? row.flops() / static_cast<double>(layout.devices()) : 0;
    errors.samples.push_back({row.id, model, job, predicted, measured, flops});
  }

  std::vector<SetErrors> finish() {
    for (SetErrors& set : sets_) {
      if (!set.samples.empty()) set.summary = summarize(set.samples);
    }
    return std::move(sets_);
  }

 private:
  std::vector<SetErrors> sets_;
};

}  // namespace

Validation validate_predictions(const std::vector<MeasuredStep>& rows, const ClusterOfRow& cluster_of) {
  Sets sets;
  Validation validation;
  for (const MeasuredStep& row : rows) {
    if (!row.why_not.empty()) {
      validation.skipped.push_back({row.id, row.why_not});
      continue;
    }
    try {
      const cluster::Cluster& cluster = cluster_of(row);
      const auto predict = [&](const Layout& layout) { return predict_fastest(layout, row.open, cluster); };
      if (row.activation_bytes) {
        sets.add(row.set, row, step_memory(row.layout, cluster).activations, *row.activation_bytes);
        continue;
      }
      sets.add(row.set, row, predict(row.layout).time.value(), *row.time_s);
      if (row.layout.profiled) {
        Layout modelled = row.layout;
        modelled.profiled.reset();
        sets.add(row.set + "_unprofiled", row, predict(modelled).time.value(), *row.time_s);
      }
    } catch (const InvalidInput& refusal) {
      validation.skipped.push_back({row.id, refusal.what()});
    }
  }
  validation.sets = sets.finish();
  return validation;
}

}  // namespace millrace::planner
