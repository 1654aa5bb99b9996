// Numbers of the whole graph in those of its parts.
#include "plan/stage_parts.h"

#include <algorithm>

namespace millrace {

std::vector<OpId> StageParts::recomputed(std::span<const OpId> whole) const {
  std::vector<OpId> result;
  auto exchange = exchanges.begin();
  for (OpId op = 0; op < static_cast<OpId>(whole_op.size()); ++op) {
    const bool is_exchange = exchange != exchanges.end() && exchange->op == op;
    const OpId named = is_exchange ? exchange->behind : whole_op[static_cast<std::size_t>(op)];
    if (is_exchange) ++exchange;
    if (std::binary_search(whole.begin(), whole.end(), named)) result.push_back(op);
  }
  return result;
}

}  // namespace millrace
