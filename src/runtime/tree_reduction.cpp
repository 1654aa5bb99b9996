// Which rank adds what to what, and the messages in between.
#include "runtime/tree_reduction.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"
#include "runtime/tree_nodes.h"

namespace millrace::runtime {
namespace {

using kernels::TreeNode;

// Its own messages follow those of the program on the same channel: all of them are behind when the sums begin.
constexpr int kTag = 0;

bool contains(const std::vector<OpId>& ops, OpId op) { return std::binary_search(ops.begin(), ops.end(), op); }

// The rank that computes each row of the batch, among the stages of `bucket` that hold `op`.
std::vector<int> owners_of_rows(const Program& program, const Bucket& bucket, OpId op) {
  std::vector<int> owners(static_cast<std::size_t>(program.batch), -1);
  for (const std::int32_t s : bucket.stages) {
    const ProgramStage& stage = program.stages[static_cast<std::size_t>(s)];
    if (!contains(stage.ops, op)) continue;
    for (const auto& micro_batch : stage.rows) {
      for (std::size_t replica = 0; replica < micro_batch.size(); ++replica) {
        const RowInterval rows = micro_batch[replica];
        std::fill(owners.begin() + rows.begin, owners.begin() + rows.end, stage.ranks[replica]);
      }
    }
  }
  return owners;
}

}  // namespace

void require_tree_reducible(const Graph& graph, const Program& program) {
  const std::string key = "train.reproducible: any";
  for (const Operator& op : graph.operators()) {
    if (op.buffers.empty()) continue;
    throw InvalidInput(fmt::format(
        "{}: operator '{}' ({}) takes statistics of a micro-batch, which is another on another grid; allowed: grid",
        key, op.name, op.schema->name));
  }
  if (!program.norm || program.overlap > 0) {
    throw InvalidInput(key + ": the schedule updates weights before all gradients are there; allowed: grid");
  }
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    std::vector<int> held(static_cast<std::size_t>(graph.size()), 0);
    for (const ProgramStage& stage : program.stages) {
      if (std::find(stage.ranks.begin(), stage.ranks.end(), static_cast<int>(rank)) == stage.ranks.end()) continue;
      for (const OpId op : stage.ops) {
        if (++held[static_cast<std::size_t>(op)] < 2) continue;
        throw InvalidInput(fmt::format("{}: device {} holds operator '{}' in two pipelines; allowed: grid", key, rank,
                                       graph.op(op).name));
      }
    }
  }
}

TreeReduction::TreeReduction(const Graph& graph, const Program& program, std::vector<StageRunner*> runners,
                             kernels::SampleDevice& device, int rank, comm::Transport& transport)
    : program_(program),
      runners_(std::move(runners)),
      device_(device),
      rank_(rank),
      transport_(transport),
      precision_(runners_.front()->parameters().precision()) {
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(program.buckets.size()); ++b) {
    const std::vector<TensorId>& tensors = program.buckets[static_cast<std::size_t>(b)].tensors;
    const bool tied =
        std::any_of(tensors.begin(), tensors.end(), [&](TensorId t) { return graph.consumers(t).size() > 1; });
    if (!tied) {
      add_part(graph, b, 0, tensors.size());
      continue;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) add_part(graph, b, i, 1);
  }
  std::int64_t most = 0;
  for (const Part& part : parts_) most = std::max(most, part.elements);
  received_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(most * kernels::real_bytes(precision_)));
  reserve_nodes();
}

void TreeReduction::reserve_nodes() {
  for (StageRunner* runner : runners_) {
    device_.tree(runner->parameters()).reserve(tree_nodes(program_, runner->stage(), rank_));
  }
}

StageRunner* TreeReduction::runner_of(std::int32_t stage) const {
  const auto found =
      std::find_if(runners_.begin(), runners_.end(), [&](const StageRunner* r) { return r->stage() == stage; });
  return found == runners_.end() ? nullptr : *found;
}

void TreeReduction::add_part(const Graph& graph, std::int32_t b, std::size_t first, std::size_t count) {
  const Bucket& bucket = program_.buckets[static_cast<std::size_t>(b)];
  Part part;
  part.owners = bucket.owners;
  for (std::size_t i = first; i < first + count; ++i) {
    part.elements += graph.tensor(bucket.tensors[i]).shape.elements_per_sample();
  }
  const TensorId tensor = bucket.tensors[first];
  for (const std::int32_t stage : bucket.stages) {
    StageRunner* runner = runner_of(stage);
    if (runner != nullptr && part.target == nullptr)
      part.target = static_cast<std::byte*>(runner->parameters().gradient(tensor));
  }
  for (const OpId op : graph.consumers(tensor)) part.uses.push_back(make_use(bucket, tensor, op));
  parts_.push_back(std::move(part));
}

TreeReduction::Use TreeReduction::make_use(const Bucket& bucket, TensorId tensor, OpId op) const {
  Use use;
  const std::vector<int> owners = owners_of_rows(program_, bucket, op);
  const std::int64_t batch = program_.batch;
  // The holder of a node's sum, after the steps that form it.
  const auto plan = [&](const auto& self, TreeNode node) -> Holder {
    const auto begin = owners.begin() + node.begin(), end = owners.begin() + node.end(batch);
    if (std::all_of(begin, end, [&](int owner) { return owner == *begin; })) return {*begin, node};
    const Holder left = self(self, node.left());
    if (node.right().begin() >= batch) return left;
    use.steps.push_back({left, self(self, node.right())});
    return left;
  };
  use.root = plan(plan, kernels::tree_root(batch));
  for (const std::int32_t stage : bucket.stages) {
    StageRunner* runner = runner_of(stage);
    if (runner == nullptr || !contains(program_.stages[static_cast<std::size_t>(stage)].ops, op)) continue;
    kernels::StageParameters& parameters = runner->parameters();
    use.tree = &device_.tree(parameters);
    use.offset = static_cast<std::byte*>(parameters.gradient(tensor, op)) -
                 static_cast<std::byte*>(parameters.gradient_range(0));
  }
  return use;
}

void TreeReduction::begin() {
  for (StageRunner* runner : runners_) device_.tree(runner->parameters()).begin(program_.batch);
}

std::span<std::byte> TreeReduction::span(std::byte* first, const Part& part) const {
  return {first, static_cast<std::size_t>(part.elements * kernels::real_bytes(precision_))};
}

std::byte* TreeReduction::at(const Use& use, const Holder& holder) const {
  return static_cast<std::byte*>(use.tree->find(holder.node)) + use.offset;
}

void TreeReduction::run(const Part& part, const Use& into_use, const Holder& into, const Use& from_use,
                        const Holder& from, comm::WaitObserver& observer) {
  if (rank_ == from.rank && rank_ != into.rank) {
    sends_.push_back(transport_.send(span(at(from_use, from), part), into.rank, kTag));
  }
  if (rank_ != into.rank) return;
  const std::byte* term = received_.get();
  if (rank_ == from.rank) {
    term = at(from_use, from);
  } else {
    transport_.wait(transport_.receive(span(received_.get(), part), from.rank, kTag), &observer);
  }
  kernels::add_gradients(at(into_use, into), term, part.elements, precision_);
}

// From the holder of the sum to all owners.
void TreeReduction::deliver(const Part& part, comm::WaitObserver& observer) {
  const Holder& root = part.uses.front().root;
  if (rank_ != root.rank) {
    if (part.target == nullptr) return;
    transport_.wait(transport_.receive(span(part.target, part), root.rank, kTag), &observer);
    return;
  }
  std::memcpy(part.target, at(part.uses.front(), root), span(part.target, part).size());
  for (const int owner : part.owners) {
    if (owner != rank_) sends_.push_back(transport_.send(span(part.target, part), owner, kTag));
  }
}

void TreeReduction::reduce(GradientReducer& reducer, comm::WaitObserver& observer) {
  for (const Part& part : parts_) {
    for (const Use& use : part.uses) {
      for (const Step& step : use.steps) run(part, use, step.into, use, step.from, observer);
    }
    const Use& first = part.uses.front();
    for (std::size_t u = 1; u < part.uses.size(); ++u) {
      run(part, first, first.root, part.uses[u], part.uses[u].root, observer);
    }
    deliver(part, observer);
  }
  for (const comm::Ticket send : sends_) transport_.wait(send, &observer);
  sends_.clear();
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(program_.buckets.size()); ++b) reducer.provided(b);
}

}  // namespace millrace::runtime
