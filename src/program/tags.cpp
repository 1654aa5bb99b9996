// Numbers the edges between each pair of ranks and spreads the tags that there are over them.
#include "program/tags.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace {
namespace {

using Pair = std::pair<std::int32_t, std::int32_t>;                        // sender, receiver
using Edge = std::tuple<Direction, TensorId, std::int32_t, std::int32_t>;  // direction, tensor, stages

}  // namespace

void assign_tags(Program& program, std::int32_t tag_limit) {
  std::map<Pair, std::map<Edge, std::int32_t>> edges;
  for (Transfer& t : program.transfers) {
    auto& known = edges[{t.sender, t.receiver}];
    const auto next = static_cast<std::int32_t>(known.size());
    t.edge = known.try_emplace(Edge{t.direction, t.tensor, t.from_stage, t.to_stage}, next).first->second;
  }
  for (Transfer& t : program.transfers) {
    const auto count = static_cast<std::int64_t>(edges[{t.sender, t.receiver}].size());
    const std::int64_t tags = std::int64_t{tag_limit} + 1;
    if (count > tags) {
      throw InvalidInput(
          fmt::format("rank {} sends {} different tensors to rank {}, but the transport has only {} tags: "
                      "cut the stages where fewer tensors cross",
                      t.sender, count, t.receiver, tags));
    }
    const auto micro_batches =
        static_cast<std::int64_t>(program.stages[static_cast<std::size_t>(t.from_stage)].rows.size());
    const std::int64_t per_edge = std::min(micro_batches, tags / count);
    t.tag = static_cast<std::int32_t>(t.edge * per_edge + t.micro_batch % per_edge);
  }
}

}  // namespace millrace
