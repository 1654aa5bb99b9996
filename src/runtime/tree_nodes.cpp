// Replays the backwards of a program.
#include "runtime/tree_nodes.h"

#include <algorithm>
#include <vector>

#include "kernels/gradient_tree.h"
#include "program/weight_segments.h"

namespace millrace::runtime {
namespace {

// The rows of a stage in the order in which their gradients become complete on `rank`.
std::vector<std::int64_t> rows_in_order(const Program& program, std::int32_t stage, int rank) {
  const ProgramStage& own = program.stages[static_cast<std::size_t>(stage)];
  const auto replica =
      static_cast<std::size_t>(std::find(own.ranks.begin(), own.ranks.end(), rank) - own.ranks.begin());
  std::vector<std::int64_t> rows;
  for (const Instruction& instruction : program.ranks[static_cast<std::size_t>(rank)].instructions) {
    if (instruction.stage != stage || !ends_micro_batch(program, instruction)) continue;
    const RowInterval interval = own.rows[static_cast<std::size_t>(instruction.micro_batch)][replica];
    for (std::int64_t row = interval.begin; row < interval.end; ++row) rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::size_t tree_nodes(const Program& program, std::int32_t stage, int rank) {
  return kernels::most_tree_nodes(rows_in_order(program, stage, rank), program.batch);
}

}  // namespace millrace::runtime
