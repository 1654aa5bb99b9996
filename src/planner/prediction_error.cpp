// Statistics of errors.
#include "planner/prediction_error.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace millrace::planner {
namespace {

// Position in the sorted list; equal values share the mean of their positions.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double mean = (static_cast<double>(i) + static_cast<double>(end - 1)) / 2;
    for (; i < end; ++i) ranks[order[i]] = mean;
  }
  return ranks;
}

// The value that a fraction of the sorted list does not exceed.
double quantile(const std::vector<double>& sorted, double fraction) {
  const auto place = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(place, 1) - 1];
}

using Groups = std::map<std::string, std::vector<const ErrorSample*>>;

double worst_regret(const Groups& jobs) {
  double worst = 0;
  for (const auto& [job, samples] : jobs) {
    const auto chosen = *std::min_element(samples.begin(), samples.end(),
                                          [](const auto* a, const auto* b) { return a->predicted < b->predicted; });
    for (const ErrorSample* sample : samples) worst = std::max(worst, chosen->measured / sample->measured - 1);
  }
  return worst;
}

// |error| is convex between the rates of single runs, so the best rate is one of theirs.
void find_constant(const std::vector<ErrorSample>& samples, ErrorSummary& summary) {
  summary.constant_mape = -1;
  for (const ErrorSample& candidate : samples) {
    const double rate = candidate.flops_per_device / candidate.measured;
    if (rate <= 0) continue;
    double sum = 0;
    for (const ErrorSample& s : samples) sum += std::abs(s.flops_per_device / rate / s.measured - 1);
    const double mape = sum / static_cast<double>(samples.size());
    if (summary.constant_mape < 0 || mape < summary.constant_mape) {
      summary.constant_mape = mape;
      summary.constant_rate = rate;
    }
  }
}

}  // namespace

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

ErrorSummary summarize(const std::vector<ErrorSample>& samples) {
  ErrorSummary summary;
  summary.runs = static_cast<int>(samples.size());
  std::vector<double> errors;
  Groups models, jobs;
  for (const ErrorSample& sample : samples) {
    const double size = std::abs(sample.error());
    if (summary.worst_id.empty() || size > summary.worst) {
      summary.worst = size;
      summary.worst_id = sample.id;
    }
    errors.push_back(size);
    summary.mape += size / static_cast<double>(samples.size());
    summary.bias += sample.error() / static_cast<double>(samples.size());
    models[sample.model].push_back(&sample);
    jobs[sample.job].push_back(&sample);
  }
  std::sort(errors.begin(), errors.end());
  summary.median = quantile(errors, 0.5);
  summary.p90 = quantile(errors, 0.9);
  for (const auto& [model, runs] : models) {
    if (runs.size() < 3) continue;
    std::vector<double> predicted, measured;
    for (const ErrorSample* run : runs) {
      predicted.push_back(run->predicted);
      measured.push_back(run->measured);
    }
    summary.models.push_back({model, static_cast<int>(runs.size()), spearman(predicted, measured)});
  }
  summary.regret = worst_regret(jobs);
  find_constant(samples, summary);
  return summary;
}

}  // namespace millrace::planner
