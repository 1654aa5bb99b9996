// Numbers layer tags in the order in which they come.
#include "graph/recompute_segments.h"

#include <string_view>
#include <unordered_map>

namespace millrace {

std::vector<int> recompute_segments(const Graph& graph, std::span<const OpId> recompute) {
  std::unordered_map<std::string_view, int> tags;
  std::vector<int> segments;
  int count = 0;
  for (const OpId op : recompute) {
    const std::string& tag = graph.op(op).layer;
    const int segment = tag.empty() ? count : tags.try_emplace(tag, count).first->second;
    if (segment == count) ++count;
    segments.push_back(segment);
  }
  return segments;
}

}  // namespace millrace
