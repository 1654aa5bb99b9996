// The best cut after prefixes of one family, on one level of machines or on two.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "partitioners/common/pipedream/level_table.h"

#include "base/limits.h"

namespace millrace::partitioners {

/// A stage on the same `step.machines` devices of some nodes, from `first_device` of each on.
struct PlacedStep {
  LevelStep step{};
  int first_node = 0;
  int nodes = 1;
  int first_device = 0;
};

struct FamilyCut {
  std::vector<PlacedStep> steps{};  ///< first to last; a parked stage has from = to
  double value = kNever;
};

class FamilySearch {
 public:
  struct Question {
    const LayerNetwork* network = nullptr;
    const Prefixes* prefixes = nullptr;
    std::vector<plan::Level> levels{};
    std::optional<double> memory_bytes{};
    /// Machines may be parked after any prefix on a stage without layers: no plan, but a bound for all plans that park
    /// them on layers without cost.
    bool park_anywhere = false;
  };
  FamilySearch(const Question& question, std::chrono::steady_clock::time_point deadline);

  /// The best cut below `limit`; its value is infinite where there is none.
  FamilyCut below(double limit);
  bool late() const { return late_; }

 private:
  using Window = LevelTable::Window;

  double seconds(std::size_t from, std::size_t to) const { return figures_.seconds[to] - figures_.seconds[from]; }
  /// Whether layers (from, to] can be one stage.
  bool nested(std::size_t from, std::size_t to) const { return question_.prefixes->within(from, to); }
  bool stop();
  std::vector<Window> windows(const LevelTable& table, double per_machine) const;
  FamilyCut on_one();
  FamilyCut on_two();
  void extend_outer(LevelTable& table, std::size_t from, const std::vector<Window>& windows);
  LevelTable inside(std::size_t source, std::size_t end, double limit,
                    std::chrono::steady_clock::time_point deadline) const;
  std::vector<PlacedStep> flattened(const std::vector<LevelStep>& outer) const;

  Question question_;
  PrefixFigures figures_;
  LevelQuestion inner_, outer_;
  std::chrono::steady_clock::time_point deadline_;
  std::size_t last_;
  double limit_ = 0;
  bool late_ = false;
};

}  // namespace millrace::partitioners
