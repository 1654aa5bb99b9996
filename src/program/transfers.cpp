// Finds what crosses the borders of stages and cuts it into messages by intersecting the rows of both sides.
#include "program/transfers.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "graph/stage_graph.h"

namespace millrace {
namespace {

std::vector<Crossing> find_crossings(const Graph& graph, const Program& program) {
  std::vector<Crossing> crossings;
  std::vector<std::int32_t> producer_of;  // flat stage by operator, for the pipeline at hand
  int pipeline = -1;
  for (std::size_t to = 0; to < program.stages.size(); ++to) {
    const ProgramStage& stage = program.stages[to];
    if (stage.ref.pipeline != pipeline) {
      pipeline = stage.ref.pipeline;
      producer_of.assign(static_cast<std::size_t>(graph.size()), -1);
      for (std::size_t s = 0; s < program.stages.size(); ++s) {
        if (program.stages[s].ref.pipeline != pipeline) continue;
        for (const OpId op : program.stages[s].ops)
          producer_of[static_cast<std::size_t>(op)] = static_cast<std::int32_t>(s);
      }
    }
    const StageGraph part = make_stage_graph(graph, stage.ops);
    for (const TensorId input : part.inputs) {
      // Graph inputs and labels are read by each rank from the data itself.
      if (graph.tensor(input).role != Role::activation) continue;
      Crossing crossing;
      crossing.tensor = input;
      crossing.producer = producer_of[static_cast<std::size_t>(graph.tensor(input).producer)];
      crossing.consumer = static_cast<std::int32_t>(to);
      // In place on ranks that hold both stages.
      if (program.stages[static_cast<std::size_t>(crossing.producer)].ranks == stage.ranks) continue;
      crossing.has_gradient =
          program.training && std::binary_search(part.gradient_inputs.begin(), part.gradient_inputs.end(), input);
      crossings.push_back(std::move(crossing));
    }
  }
  return crossings;
}

// Each shard of a receiving replica takes its rows from one shard of the sending one: they hold the same.
void add_message(Program& program, Transfer transfer, std::size_t from_replica, std::size_t to_replica) {
  const ProgramStage& sending = program.stages[static_cast<std::size_t>(transfer.from_stage)];
  const ProgramStage& receiving = program.stages[static_cast<std::size_t>(transfer.to_stage)];
  const auto sources = static_cast<std::size_t>(sending.tensor_parallel);
  const auto shards = static_cast<std::size_t>(receiving.tensor_parallel);
  for (std::size_t t = 0; t < shards; ++t) {
    transfer.sender = sending.ranks[from_replica * sources + t % sources];
    transfer.receiver = receiving.ranks[to_replica * shards + t];
    program.transfers.push_back(transfer);
  }
}

// Rows of replicas follow each other, so one walk over both lists meets every non-empty intersection.
void add_messages(Program& program, const Crossing& crossing, Direction direction, std::size_t micro_batch) {
  const bool activation = direction == Direction::activation;
  const std::int32_t from = activation ? crossing.producer : crossing.consumer;
  const std::int32_t to = activation ? crossing.consumer : crossing.producer;
  const std::vector<RowInterval>& sent = program.stages[static_cast<std::size_t>(from)].rows[micro_batch];
  const std::vector<RowInterval>& wanted = program.stages[static_cast<std::size_t>(to)].rows[micro_batch];
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < sent.size() && j < wanted.size()) {
    const RowInterval rows = intersect(sent[i], wanted[j]);
    if (!rows.empty()) {
      Transfer transfer;
      transfer.direction = direction;
      transfer.tensor = crossing.tensor;
      transfer.from_stage = from;
      transfer.to_stage = to;
      transfer.micro_batch = static_cast<std::int32_t>(micro_batch);
      transfer.rows = rows;
      add_message(program, transfer, i, j);
    }
    if (sent[i].end <= wanted[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
}

std::vector<std::int32_t> add_all_messages(Program& program, const Crossing& crossing, Direction direction) {
  const std::size_t micro_batches = program.stages[static_cast<std::size_t>(crossing.producer)].rows.size();
  std::vector<std::int32_t> starts{static_cast<std::int32_t>(program.transfers.size())};
  for (std::size_t k = 0; k < micro_batches; ++k) {
    add_messages(program, crossing, direction, k);
    starts.push_back(static_cast<std::int32_t>(program.transfers.size()));
  }
  return starts;
}

}  // namespace

Crossings add_transfers(const Graph& graph, Program& program) {
  Crossings crossings;
  crossings.all = find_crossings(graph, program);
  crossings.into.resize(program.stages.size());
  crossings.out_of.resize(program.stages.size());
  // A rank that holds several consumers gets a tensor once, for the first of them.
  std::set<std::tuple<TensorId, std::int32_t, std::vector<int>>> sent;
  for (std::size_t c = 0; c < crossings.all.size(); ++c) {
    Crossing& crossing = crossings.all[c];
    const std::vector<int>& ranks = program.stages[static_cast<std::size_t>(crossing.consumer)].ranks;
    crossing.has_activation = sent.emplace(crossing.tensor, crossing.producer, ranks).second;
    if (crossing.has_activation) crossing.activations = add_all_messages(program, crossing, Direction::activation);
    if (crossing.has_gradient) crossing.gradients = add_all_messages(program, crossing, Direction::gradient);
    crossings.into[static_cast<std::size_t>(crossing.consumer)].push_back(static_cast<std::int32_t>(c));
    crossings.out_of[static_cast<std::size_t>(crossing.producer)].push_back(static_cast<std::int32_t>(c));
  }
  crossings.gradients_back_to = crossings.out_of;
  const auto key = [&](std::int32_t c, int sign) {
    const Crossing& crossing = crossings.all[static_cast<std::size_t>(c)];
    return std::tuple(crossing.tensor, sign * crossing.consumer);
  };
  for (auto& list : crossings.out_of) {
    std::sort(list.begin(), list.end(), [&](std::int32_t a, std::int32_t b) { return key(a, 1) < key(b, 1); });
  }
  for (auto& list : crossings.gradients_back_to) {
    std::sort(list.begin(), list.end(), [&](std::int32_t a, std::int32_t b) { return key(a, -1) < key(b, -1); });
  }
  return crossings;
}

}  // namespace millrace
