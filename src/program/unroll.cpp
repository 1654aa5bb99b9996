// Rounds of each list, less what belongs to iterations that never began.
#include "program/unroll.h"

namespace millrace {

std::vector<std::vector<UnrolledInstruction>> unroll(const Program& program, int iterations) {
  std::vector<std::vector<UnrolledInstruction>> ranks;
  for (const RankProgram& rank : program.ranks) {
    std::vector<UnrolledInstruction>& list = ranks.emplace_back();
    for (int round = 0; round < iterations + program.overlap; ++round) {
      for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
        const int iteration = round - rank.instructions[i].lag;
        if (iteration < 0 || iteration >= iterations) continue;
        list.push_back({static_cast<std::int32_t>(i), iteration});
      }
    }
  }
  return ranks;
}

}  // namespace millrace
