// What Piper's formula says of the operators between two prefixes, at each tensor-parallel degree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "partitioners/common/prefixes.h"
#include "plan/published/piper.h"

namespace millrace::partitioners {

/// One operator at one degree: the variant that is faster, and what the other one saves.
struct PiperChoice {
  bool offered = false;
  double seconds = 0;
  double memory_a = 0, memory_b = 0;  ///< of the faster variant
  bool faster_is_recompute = false;
  bool has_other = false;
  double extra_seconds = 0;         ///< of the other variant, not negative
  double saved_a = 0, saved_b = 0;  ///< memory of the faster less that of the other; may be negative
};

/// Operators (from, to] as one stage, before replicas.
struct PiperSegment {
  double seconds = 0;         ///< of the faster variants
  double border_seconds = 0;  ///< of the edges to other stages
  double parameter_bytes = 0;
  double memory_a = 0, memory_b = 0;
};

class PiperStageCosts {
 public:
  PiperStageCosts(const plan::PiperQuestion& question, const Prefixes& prefixes);

  const std::vector<int>& degrees() const { return degrees_; }
  const std::vector<PiperChoice>& choices(std::size_t degree) const { return choices_[degree]; }
  /// Whether all operators of the segment have figures at the degree (by position in degrees()).
  bool offered(std::size_t degree, std::size_t from, std::size_t to) const {
    return missing_[degree][to] == missing_[degree][from];
  }
  PiperSegment segment(std::size_t degree, std::size_t from, std::size_t to) const;

  /// Seconds × devices that the operators of a prefix take at least.
  double least_work(std::size_t prefix) const { return least_work_[prefix]; }
  /// False where an operator has more variants than a plan can tell, or variants that differ in parameters or
  /// synchronisation; the search then reckons with the larger.
  bool exact() const { return exact_; }

 private:
  struct Border {  // an edge that leaves a prefix
    int from = 0, to = 0;
    std::vector<double> sent, received;  // seconds at each end, by degree
  };
  PiperChoice choice(OpId op, int degree);
  void add_prefix_sums(const Prefixes& prefixes);
  void add_borders(const Prefixes& prefixes);

  const plan::PiperQuestion& question_;
  const Prefixes* prefixes_;
  std::vector<int> degrees_;
  std::vector<std::vector<PiperChoice>> choices_;  // [degree][operator]
  std::vector<std::vector<double>> parameters_;    // [degree][operator]
  std::vector<std::vector<int>> missing_;          // [degree][prefix]: operators without figures
  std::vector<std::vector<PiperSegment>> sums_;    // [degree][prefix]; no borders
  std::vector<Border> borders_;
  std::vector<std::vector<int>> leaving_;  // by prefix: borders
  std::vector<double> least_work_;
  bool exact_ = true;
};

}  // namespace millrace::partitioners
