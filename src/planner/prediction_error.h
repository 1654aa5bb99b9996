// How far predictions are from measurements: errors, ranks and regret of one set of runs.
#pragma once

#include <string>
#include <vector>

namespace millrace::planner {

/// One run, predicted and measured, in the same unit.
struct ErrorSample {
  std::string id;
  std::string model;  ///< plans of one model are ranked among each other
  std::string job;    ///< the same model, devices and batch: one plan of these would be chosen
  double predicted = 0;
  double measured = 0;
  double flops_per_device = 0;  ///< 0: not known

  double error() const { return predicted / measured - 1; }
};

/// Rank correlation (Spearman) of one model's runs.
struct ModelRanks {
  std::string model;
  int runs = 0;
  double spearman = 0;
};

struct ErrorSummary {
  int runs = 0;
  double mape = 0, median = 0, p90 = 0, worst = 0;  ///< of |error|; fractions
  std::string worst_id;
  double bias = 0;                 ///< mean error
  std::vector<ModelRanks> models;  ///< with at least three runs
  double regret = 0;               ///< worst over jobs: time of the plan predicted best over the best, less 1
  double constant_rate = 0;        ///< operations per second and device of the best predictor that knows no more
  double constant_mape = 0;        ///< its error; it has seen all of these runs
};

/// \pre  samples is not empty; measured times are above 0.
ErrorSummary summarize(const std::vector<ErrorSample>& samples);

/// Rank correlation of two lists, equal numbers sharing their mean rank; 0 where one of them is constant.
double spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace millrace::planner
