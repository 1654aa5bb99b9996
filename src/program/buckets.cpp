// Sorts tensors by when a backward pass completes them and fills one open bucket per set of stages.
#include "program/buckets.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/errors.h"
#include "graph/footprint.h"

namespace millrace {
namespace {

struct Owned {
  TensorId tensor = -1;
  std::int32_t stage = -1;           // the earliest that uses it, by number in its pipeline
  OpId op = -1;                      // the first that uses it
  std::vector<std::int32_t> stages;  // flat indices, ascending: a bucket has one such set
  int shards = 1;
};

std::vector<Owned> owned_tensors(const Graph& graph, const std::vector<ProgramStage>& stages) {
  std::map<TensorId, Owned> found;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const ProgramStage& stage = stages[s];
    for (const OpId id : stage.ops) {
      const Operator& op = graph.op(id);
      for (const auto* list : {&op.parameters, &op.buffers}) {
        for (const TensorId tensor : *list) {
          const auto [place, is_new] = found.try_emplace(tensor);
          Owned& owned = place->second;
          owned.tensor = tensor;
          owned.op = is_new ? id : std::min(owned.op, id);
          owned.stage = is_new ? stage.ref.stage : std::min(owned.stage, stage.ref.stage);
          if (owned.stages.empty() || owned.stages.back() != static_cast<std::int32_t>(s)) {
            owned.stages.push_back(static_cast<std::int32_t>(s));
          }
          if (!is_new && owned.shards != stage.tensor_parallel) {
            throw InvalidInput(
                fmt::format("parameter {} is in stages of {} and of {} tensor-parallel devices; all stages "
                            "of a parameter have the same number",
                            graph.tensor(tensor).name, owned.shards, stage.tensor_parallel));
          }
          owned.shards = stage.tensor_parallel;
        }
      }
    }
  }
  std::vector<Owned> all;
  for (auto& [tensor, owned] : found) {
    all.push_back(std::move(owned));
  }
  return all;
}

std::vector<int> owners_of_shard(const std::vector<ProgramStage>& stages, const std::vector<std::int32_t>& held_by,
                                 int shard) {
  std::vector<int> owners;
  for (const std::int32_t s : held_by) {
    const ProgramStage& stage = stages[static_cast<std::size_t>(s)];
    for (std::size_t i = static_cast<std::size_t>(shard); i < stage.ranks.size();
         i += static_cast<std::size_t>(stage.tensor_parallel)) {
      owners.push_back(stage.ranks[i]);
    }
  }
  std::sort(owners.begin(), owners.end());
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  return owners;
}

}  // namespace

std::vector<Bucket> make_buckets(const Graph& graph, const std::vector<ProgramStage>& stages, Bytes bucket_size) {
  std::vector<Owned> tensors = owned_tensors(graph, stages);
  std::sort(tensors.begin(), tensors.end(), [](const Owned& a, const Owned& b) {
    return std::tuple(b.stage, b.op, a.tensor) < std::tuple(a.stage, a.op, b.tensor);
  });

  struct Open {
    Bucket bucket;
    std::int64_t bytes = 0;
    std::size_t complete = 0;  // position of its last tensor: the bucket is ready then
  };
  std::vector<Open> buckets;
  std::map<std::vector<std::int32_t>, std::size_t> open;  // bucket that a set of stages fills at the moment
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Owned& owned = tensors[i];
    const std::int64_t bytes = tensor_bytes(graph.tensor(owned.tensor), 4).value() / owned.shards;
    auto place = open.find(owned.stages);
    if (place == open.end() || buckets[place->second].bytes + bytes > bucket_size.value()) {
      place = open.insert_or_assign(owned.stages, buckets.size()).first;
      buckets.emplace_back();
      buckets.back().bucket.stages = owned.stages;
    }
    Open& target = buckets[place->second];
    target.bucket.tensors.push_back(owned.tensor);
    target.bytes += bytes;
    target.complete = i;
  }
  std::sort(buckets.begin(), buckets.end(), [](const Open& a, const Open& b) { return a.complete < b.complete; });

  std::vector<Bucket> result;
  for (const Open& open_bucket : buckets) {
    const Bucket& whole = open_bucket.bucket;
    const int shards = stages[static_cast<std::size_t>(whole.stages.front())].tensor_parallel;
    for (int shard = 0; shard < shards; ++shard) {
      Bucket bucket = whole;
      bucket.shard = shard;
      bucket.owners = owners_of_shard(stages, whole.stages, shard);
      result.push_back(std::move(bucket));
    }
  }
  return result;
}

}  // namespace millrace
