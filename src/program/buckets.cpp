// Sorts tensors by when a backward pass completes them and fills one open bucket per set of stages.
#include "program/buckets.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/errors.h"
#include "graph/footprint.h"
#include "program/part_collectives.h"
#include "program/storage_order.h"

namespace millrace {
namespace {

struct Owned {
  TensorId tensor = -1;
  std::int32_t stage = -1;           // the earliest that uses it, by number in its pipeline
  OpId op = -1;                      // the first that uses it
  std::vector<std::int32_t> stages;  // flat indices, ascending: a bucket has one such set
  int shards = 1;                    // parts
  int devices = 1;                   // of a replica
  Holding held{};
};

// The copies of a parameter are reduced and updated part by part.
void require_alike(const Tensor& tensor, const Owned& owned, const ProgramStage& stage, const Holding& held) {
  if (owned.devices != stage.tensor_parallel) {
    throw InvalidInput(
        fmt::format("parameter {} is in stages of {} and of {} tensor-parallel devices; all stages "
                    "of a parameter have the same number",
                    tensor.name, owned.devices, stage.tensor_parallel));
  }
  if (owned.held == held) return;
  throw InvalidInput(
      fmt::format("parameter {} is in other parts in stage {} of pipeline {} than in a stage before: annotate its "
                  "operators so that both take the same",
                  tensor.name, stage.ref.stage, stage.ref.pipeline));
}

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
          const Holding held = stage.parts == nullptr ? Holding{} : stage.parts->parameters.at(tensor);
          if (is_new) owned.held = held;
          if (!is_new) require_alike(graph.tensor(tensor), owned, stage, held);
          owned.shards = shards_of(stage, tensor);
          owned.devices = stage.tensor_parallel;
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

// Every `step`-th rank of the stages, from `shard` on.
std::vector<int> owners_of_shard(const std::vector<ProgramStage>& stages, const std::vector<std::int32_t>& held_by,
                                 int shard, int step) {
  std::vector<int> owners;
  for (const std::int32_t s : held_by) {
    const ProgramStage& stage = stages[static_cast<std::size_t>(s)];
    for (std::size_t i = static_cast<std::size_t>(shard); i < stage.ranks.size(); i += static_cast<std::size_t>(step)) {
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
    int shards = 1;
    std::int64_t bytes = 0;
    std::size_t complete = 0;  // position of its last tensor: the bucket is ready then
  };
  std::vector<Open> buckets;
  // Bucket that a set of stages fills at the moment, with tensors of so many parts.
  std::map<std::pair<std::vector<std::int32_t>, int>, std::size_t> open;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Owned& owned = tensors[i];
    const std::int64_t bytes = tensor_bytes(graph.tensor(owned.tensor), 4).value() / owned.shards;
    const std::pair key(owned.stages, owned.shards);
    auto place = open.find(key);
    if (place == open.end() || buckets[place->second].bytes + bytes > bucket_size.value()) {
      place = open.insert_or_assign(key, buckets.size()).first;
      buckets.emplace_back();
      buckets.back().bucket.stages = owned.stages;
      buckets.back().shards = owned.shards;
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
    for (int shard = 0; shard < open_bucket.shards; ++shard) {
      Bucket bucket = whole;
      bucket.shard = shard;
      bucket.owners = owners_of_shard(stages, whole.stages, shard, open_bucket.shards);
      result.push_back(std::move(bucket));
    }
  }
  return result;
}

OpId completing_op(const Graph& graph, const Bucket& bucket, const ProgramStage& stage) {
  for (const OpId id : stage.ops) {
    for (const auto* list : {&graph.op(id).parameters, &graph.op(id).buffers}) {
      for (const TensorId tensor : *list) {
        if (std::find(bucket.tensors.begin(), bucket.tensors.end(), tensor) != bucket.tensors.end()) return id;
      }
    }
  }
  return -1;
}

std::int64_t bucket_elements(const Graph& graph, const Bucket& bucket) {
  std::int64_t elements = 0;
  for (const TensorId tensor : bucket.tensors) elements += parameter_elements(graph.tensor(tensor));
  return elements;
}

ElementRange updated_part(const Graph& graph, const Program& program, const Bucket& bucket, int owner) {
  const std::int64_t elements = bucket_elements(graph, bucket);
  if (!is_sharded(program, bucket)) return {0, elements};
  const auto place = std::lower_bound(bucket.owners.begin(), bucket.owners.end(), owner) - bucket.owners.begin();
  return even_part(elements, static_cast<std::int64_t>(bucket.owners.size()), place);
}

std::optional<std::vector<ElementRange>> kept_states(const Graph& graph, const Program& program, std::int32_t stage,
                                                     int rank) {
  if (!program.shard_optimizer) return std::nullopt;
  std::vector<ElementRange> kept;
  std::int64_t first = 0;
  for (const StoredBucket& stored : stored_buckets(program, stage)) {
    const Bucket& bucket = program.buckets[static_cast<std::size_t>(stored.bucket)];
    const ElementRange part = updated_part(graph, program, bucket, rank);
    if (!kept.empty() && kept.back().end == first + part.begin) {
      kept.back().end = first + part.end;
    } else if (part.size() > 0) {
      kept.push_back({first + part.begin, first + part.end});
    }
    first += bucket_elements(graph, bucket);
  }
  return kept;
}

}  // namespace millrace
