// Lives of the buckets, read off the lists of the stage's ranks; places by size, the largest first.
#include "program/recycled_gradients.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "graph/footprint.h"
#include "program/attached.h"
#include "program/buckets.h"
#include "program/factored_gradients.h"
#include "program/storage_order.h"

namespace millrace {
namespace {

constexpr OpId kFirstOp = 0;
constexpr OpId kLastOp = std::numeric_limits<OpId>::max();

// While the backward is at the operators from `low` to `high`.
struct Life {
  OpId low = kFirstOp, high = kLastOp;

  bool meets(const Life& other) const { return low <= other.high && other.low <= high; }
};

struct Block {
  std::int64_t elements = 0;
  Life life{};
  std::int64_t first = 0;
};

bool contributes(InstructionKind kind) {
  return kind == InstructionKind::backward || kind == InstructionKind::backward_weight;
}

// The operator that the update of `bucket` waits for on a rank; nothing where it does not end within the only backward
// that contributes, one of `stage`.
std::optional<OpId> end_within(const std::vector<Instruction>& list, const Bucket& bucket, std::int32_t index,
                               std::int32_t stage) {
  std::optional<OpId> end;
  int contributions = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!contributes(list[i].kind) || !std::binary_search(bucket.stages.begin(), bucket.stages.end(), list[i].stage)) {
      continue;
    }
    if (++contributions > 1 || list[i].stage != stage) return std::nullopt;
    OpId reached = kLastOp;  // what is attached happens in its order
    for (const std::size_t position : attached_to(list, i)) {
      reached = std::min(reached, static_cast<OpId>(list[position].op));
      if (list[position].kind == InstructionKind::update_weights && list[position].bucket == index) end = reached;
    }
  }
  return end;
}

Life life_of(const Graph& graph, const Program& program, std::int32_t stage, std::int32_t index) {
  if (!program.training || program.norm || program.overlap > 0) return {};
  const Bucket& bucket = program.buckets[static_cast<std::size_t>(index)];
  const ProgramStage& of = program.stages[static_cast<std::size_t>(stage)];
  Life life{kLastOp, completing_op(graph, bucket, of)};
  for (const int rank : of.ranks) {
    const auto& list = program.ranks[static_cast<std::size_t>(rank)].instructions;
    const std::optional<OpId> end = end_within(list, bucket, index, stage);
    if (!end) return {};
    life.low = std::min(life.low, *end);
  }
  for (const OpId id : of.ops) {
    for (const TensorId tensor : graph.op(id).parameters) {
      if (std::find(bucket.tensors.begin(), bucket.tensors.end(), tensor) != bucket.tensors.end())
        life.high = std::max(life.high, id);
    }
  }
  return life;
}

// Gives every block its first element and returns how many there are in all.
std::int64_t place(std::vector<Block>& blocks) {
  std::vector<Block*> by_size;
  for (Block& block : blocks) by_size.push_back(&block);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Block* a, const Block* b) { return a->elements > b->elements; });
  std::vector<const Block*> placed;
  std::int64_t all = 0;
  for (Block* block : by_size) {
    std::vector<const Block*> beside;
    std::copy_if(placed.begin(), placed.end(), std::back_inserter(beside),
                 [&](const Block* other) { return other->life.meets(block->life); });
    std::sort(beside.begin(), beside.end(), [](const Block* a, const Block* b) { return a->first < b->first; });
    for (const Block* other : beside) {
      if (other->first >= block->first + block->elements) break;
      block->first = std::max(block->first, other->first + other->elements);
    }
    placed.push_back(block);
    all = std::max(all, block->first + block->elements);
  }
  return all;
}

}  // namespace

GradientPlaces recycled_gradients(const Graph& graph, const Program& program, std::int32_t stage) {
  const StageGraph part = make_stage_graph(graph, program.stages[static_cast<std::size_t>(stage)].ops);
  const std::vector<TensorId> order = storage_order(program, stage);
  const std::vector<StoredBucket> stored = stored_buckets(program, stage);
  std::vector<Block> blocks;
  std::vector<FactoredShape> factors;
  bool recycles = false;
  for (const StoredBucket& at : stored) {
    const Bucket& bucket = program.buckets[static_cast<std::size_t>(at.bucket)];
    const FactoredShape kept = factored_shape(graph, bucket);
    factors.resize(factors.size() + at.count, kept);
    if (kept.rows > 0) {
      blocks.push_back({kept.elements()});
      continue;
    }
    blocks.push_back({bucket_elements(graph, bucket), life_of(graph, program, stage, at.bucket)});
    recycles = recycles || blocks.back().life.high != kLastOp;
  }
  GradientPlaces places = gradient_places(part, order, factors);
  if (!recycles) return places;

  struct Beside {  // an accumulator that is not the gradient itself
    std::size_t position, use, block;
  };
  std::vector<Beside> besides;
  for (std::size_t b = 0; b < stored.size(); ++b) {
    const Life life = blocks[b].life;
    for (std::size_t i = stored[b].first; i < stored[b].first + stored[b].count; ++i) {
      const bool buffer = graph.tensor(order[i]).role == Role::buffer && life.high != kLastOp;
      for (std::size_t use = buffer ? 0 : 1; use < places.places[i].uses.size(); ++use) {
        besides.push_back({i, use, blocks.size()});
        blocks.push_back({parameter_elements(graph.tensor(order[i])), buffer ? Life{} : life});
      }
    }
  }
  const std::int64_t elements = place(blocks);
  const std::int64_t parts = places.part == 0 ? 0 : places.elements - places.part;
  if (elements + parts >= places.elements) return places;  // what waits beside them takes more than buckets share
  places.elements = elements;
  add_part_of_factors(places);
  for (std::size_t b = 0; b < stored.size(); ++b) {
    std::int64_t next = blocks[b].first;
    for (std::size_t i = stored[b].first; i < stored[b].first + stored[b].count; ++i) {
      places.places[i].first = next;
      if (!places.places[i].uses.empty()) places.places[i].uses.front().second = next;
      next += parameter_elements(graph.tensor(order[i]));
    }
  }
  for (const Beside& beside : besides) {
    places.places[beside.position].uses[beside.use].second = blocks[beside.block].first;
  }
  return places;
}

double gradient_share(const Graph& graph, const Program& program, std::int32_t stage) {
  const ProgramStage& of = program.stages[static_cast<std::size_t>(stage)];
  if (of.tensor_parallel > 1 || program.norm) return 1;
  const auto& list = program.ranks[static_cast<std::size_t>(of.ranks.front())].instructions;
  const auto saves = [&](const Instruction& at) {
    if (at.kind != InstructionKind::update_weights) return false;
    return at.op >= 0 || program.buckets[static_cast<std::size_t>(at.bucket)].factor_rows > 0;
  };
  if (std::none_of(list.begin(), list.end(), saves)) return 1;
  const StageGraph part = make_stage_graph(graph, of.ops);
  const std::int64_t all = gradient_places(part, storage_order(program, stage)).elements;
  if (all == 0) return 1;
  return static_cast<double>(recycled_gradients(graph, program, stage).elements) / static_cast<double>(all);
}

}  // namespace millrace
