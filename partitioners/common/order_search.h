// The search that dp and hippie share: every order, number of pipelines and deal of devices is cut, and the evaluator
// judges the best cuts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/option.h"
#include "config/values.h"
#include "partitioners/common/cut_search.h"
#include "plan/evaluator.h"
#include "plan/plan_set.h"
#include "plan/shapes.h"

namespace millrace::partitioners {

class OrderSearch {
 public:
  struct Settings {
    std::string partitioner;  ///< its name
    bool topological = true;  ///< orders
    bool cluster = true;
    double thinning = 1e-3;  ///< relative
    int caps = 64;           ///< on memory that are tried for memory_efficiency
    Seconds time_limit{};
  };

  /// Both must outlive it.
  OrderSearch(const plan::Problem& problem, plan::Evaluator& evaluate, Settings settings);

  /// A plan that fits, soon: of one number of pipelines after the other the quick cut of one order. None: no such cut.
  std::optional<plan::Candidate> first();

  /// For a search without a deadline.
  static constexpr Seconds kUnlimited{1e8};

  /// The best plan of each number of pipelines, or of the most promising where graph and cluster are large.
  plan::PlanSet run();

 private:
  struct Task {
    const plan::Shape* shape = nullptr;
    const DeviceDeal* deal = nullptr;
    Sequence* sequence = nullptr;
    std::optional<OrderCut> cut{};
  };

  bool late() const { return partitioners::late(deadline_); }
  bool large() const;
  std::vector<plan::Shape> shapes();
  void order(const plan::Shape& shape);
  void estimate(std::vector<Task>& tasks);
  void choose(const plan::Shape& shape, std::vector<Task>& tasks);
  std::optional<OrderCut> cut(const Task& task, const MemoryRules& rules);
  std::optional<plan::Candidate> fitting(Task& task);
  std::optional<plan::Candidate> efficient(Task& task);
  std::optional<plan::Candidate> smallest(Task& task);
  plan::Candidate judged(const Task& task, const OrderCut& cut);
  void prove(const Task& task, const OrderCut& cut, plan::PlanReport& report) const;
  double excess(const plan::PlanReport& report) const;

  const plan::Problem* problem_;
  plan::Evaluator* evaluate_;
  Settings settings_;
  Deadline deadline_;
  CutSearch search_;
  GraphBytes bytes_;
  bool limited_;  // some device has a memory limit
  std::string digest_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  plan::PlanSet plans_;
};

/// The options that both have, and the settings that they make.
config::Options order_options();
OrderSearch::Settings order_settings(std::string partitioner, const config::Values& options);

}  // namespace millrace::partitioners
