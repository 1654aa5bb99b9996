// Edges once a copy, groups once for each set of copies that they join.
#include "sim/grid.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "base/index.h"

namespace millrace::sim {
namespace {

struct GridShape {
  std::int32_t devices = 0, tensor = 1, data = 1;
  std::int32_t rank(std::int32_t device, std::int32_t shard, std::int32_t replica) const {
    return (replica * devices + device) * tensor + shard;
  }
};

// The copies of one group that `reach` makes, by the shard and the replica of its first member.
std::int32_t group_of(const GridShape& shape, Reach reach, std::int32_t first, std::int32_t shard,
                      std::int32_t replica) {
  switch (reach) {
    case Reach::copy:
      return first + replica * shape.tensor + shard;
    case Reach::tensor:
      return first + replica;
    case Reach::data:
      return first + shard;
    case Reach::all:
      return first;
  }
  return first;
}

std::int32_t copies(const GridShape& shape, Reach reach) {
  switch (reach) {
    case Reach::copy:
      return shape.tensor * shape.data;
    case Reach::tensor:
      return shape.data;
    case Reach::data:
      return shape.tensor;
    case Reach::all:
      return 1;
  }
  return 1;
}

}  // namespace

Job grid(const Job& pipeline, int tensor, int data, std::span<const Reach> reach) {
  if (tensor < 1 || data < 1 || reach.size() != pipeline.groups.size()) {
    throw InvalidInput(fmt::format("grid: {} × {} copies and a reach for {} of {} groups", tensor, data, reach.size(),
                                   pipeline.groups.size()));
  }
  const GridShape shape{static_cast<std::int32_t>(pipeline.ranks.size()), tensor, data};
  Job job;
  job.programs = pipeline.programs;
  job.receive_window = pipeline.receive_window;
  const std::int64_t size = std::int64_t{tensor} * data;
  job.ranks.resize(pipeline.ranks.size() * at(size));
  job.edges.reserve(pipeline.edges.size() * at(size));
  std::vector<std::int32_t> first_group;
  std::int32_t groups = 0;
  for (const Reach each : reach) {
    first_group.push_back(groups);
    groups += copies(shape, each);
  }
  job.groups.resize(at(groups));
  // Copy by copy: what belongs together lies together in memory.
  for (std::int32_t replica = 0; replica < data; ++replica) {
    for (std::int32_t shard = 0; shard < tensor; ++shard) {
      const auto base = static_cast<std::int32_t>(job.edges.size());
      for (const Edge& edge : pipeline.edges) {
        job.edges.push_back({.sender = shape.rank(edge.sender, shard, replica),
                             .receiver = shape.rank(edge.receiver, shard, replica),
                             .latency = edge.latency,
                             .seconds_per_byte = edge.seconds_per_byte});
      }
      for (std::int32_t device = 0; device < shape.devices; ++device) {
        const Rank& source = pipeline.ranks[at(device)];
        Rank& rank = job.ranks[at(shape.rank(device, shard, replica))];
        rank.program = source.program;
        rank.slowness = source.slowness;
        for (const std::int32_t e : source.edges) rank.edges.push_back(base + e);
        for (const std::int32_t g : source.groups) {
          const std::int32_t its = group_of(shape, reach[at(g)], first_group[at(g)], shard, replica);
          rank.groups.push_back(its);
          Group& group = job.groups[at(its)];
          group.members.push_back(shape.rank(device, shard, replica));
          ++group.size;
        }
      }
    }
  }
  return job;
}

}  // namespace millrace::sim
