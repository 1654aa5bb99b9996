// The separate checks of the verifier; each but the first needs indices that are in range.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "program/program.h"
#include "program/verifier.h"

namespace millrace::verification {

/// Collects problems up to a limit that a person can read.
class Findings {
 public:
  void add(std::string text) {
    if (problems_.size() < kLimit) problems_.push_back({std::move(text)});
  }
  bool empty() const { return problems_.empty(); }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  static constexpr std::size_t kLimit = 20;
  std::vector<Problem> problems_;
};

/// Iterations that show every state of a program: one that flushes has one, others need all overlaps to meet.
inline int iterations_to_check(const Program& program) {
  const bool flushes = (program.norm && !program.post_validation) || !program.training;
  return flushes ? 1 : program.overlap + 2;
}

void check_indices(const Program& program, Findings& findings);
void check_compute(const Graph& graph, const Program& program, Findings& findings);
/// Messages have one send and one receive, tags tell them apart.
void check_matching(const Graph& graph, const Program& program, std::int32_t tag_limit, Findings& findings);
/// Every computation has the rows that it reads.
void check_coverage(const Graph& graph, const Program& program, Findings& findings);
void check_reductions(const Graph& graph, const Program& program, Findings& findings);
void check_execution(const Graph& graph, const Program& program, Findings& findings);

}  // namespace millrace::verification
