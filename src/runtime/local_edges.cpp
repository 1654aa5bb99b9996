// Finds producers and consumers among the stages that share all ranks, and copies between their slots.
#include "runtime/local_edges.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "base/index.h"
#include "graph/stage_graph.h"
#include "kernels/add_values.h"
#include "runtime/exchange.h"

namespace millrace::runtime {
namespace {

bool holds(const std::vector<TensorId>& ascending, TensorId tensor) {
  return std::binary_search(ascending.begin(), ascending.end(), tensor);
}

}  // namespace

LocalEdges::LocalEdges(const Graph& graph, const Program& program, int rank, std::vector<StageRunner*> runners,
                       kernels::Precision precision, kernels::Storage storage)
    : runners_(std::move(runners)),
      precision_(precision),
      storage_(storage),
      sources_(program.stages.size()),
      sums_(program.stages.size()),
      gifts_(program.stages.size()) {
  std::vector<StageGraph> parts;
  for (const ProgramStage& stage : program.stages) parts.push_back(make_stage_graph(graph, stage.ops));
  find_sources(program, graph, parts);
  if (program.training) find_sums(program, graph, rank, parts);
}

void LocalEdges::find_sources(const Program& program, const Graph& graph, const std::vector<StageGraph>& parts) {
  std::map<std::pair<int, TensorId>, std::int32_t> producers;  // by pipeline
  for (std::size_t s = 0; s < parts.size(); ++s) {
    for (const TensorId output : parts[s].outputs) {
      producers[{program.stages[s].ref.pipeline, output}] = static_cast<std::int32_t>(s);
    }
  }
  std::map<std::tuple<int, TensorId, std::vector<int>>, std::int32_t> receivers;  // the first consumer gets the message
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const ProgramStage& stage = program.stages[s];
    for (const TensorId input : parts[s].inputs) {
      if (graph.tensor(input).role != Role::activation) continue;
      const std::int32_t producer = producers.at({stage.ref.pipeline, input});
      if (program.stages[at(producer)].ranks == stage.ranks) {
        sources_[s].push_back({input, producer, false});
        continue;
      }
      const auto [first, is_new] =
          receivers.try_emplace({stage.ref.pipeline, input, stage.ranks}, static_cast<std::int32_t>(s));
      if (!is_new) sources_[s].push_back({input, first->second, true});
    }
    if (runners_[s] == nullptr) sources_[s].clear();
  }
}

void LocalEdges::find_sums(const Program& program, const Graph& graph, int rank, const std::vector<StageGraph>& parts) {
  for (std::size_t s = 0; s < parts.size(); ++s) {
    if (runners_[s] == nullptr) continue;
    for (const TensorId output : parts[s].gradient_outputs) {
      Sum sum;
      sum.tensor = output;
      sum.row_bytes = bytes_per_row(graph.tensor(output), precision_);
      for (std::size_t c = parts.size(); c-- > 0;) {
        if (program.stages[c].ref.pipeline != program.stages[s].ref.pipeline) continue;
        if (!holds(parts[c].gradient_inputs, output)) continue;
        const bool local = program.stages[c].ranks == program.stages[s].ranks;
        if (local) gifts_[c].push_back({static_cast<std::int32_t>(s), sums_[s].size(), sum.terms.size()});
        Term& term = sum.terms.emplace_back(static_cast<std::int32_t>(c), local);
        if (local && sum.terms.size() > 1) make_room(term, program, rank, s, sum.row_bytes);
      }
      sums_[s].push_back(std::move(sum));
    }
  }
}

void LocalEdges::make_room(Term& term, const Program& program, int rank, std::size_t stage, std::int64_t row_bytes) {
  const ProgramStage& producer = program.stages[stage];
  const auto index = std::find(producer.ranks.begin(), producer.ranks.end(), rank) - producer.ranks.begin();
  const std::size_t replica = producer.replica_of(static_cast<std::size_t>(index));
  for (const std::vector<RowInterval>& intervals : producer.rows) {
    const std::int64_t rows = intervals[replica].size();
    const bool known = std::any_of(term.waiting.begin(), term.waiting.end(),
                                   [&](const Waiting& waiting) { return waiting.rows == rows; });
    if (rows == 0 || known) continue;
    Waiting& fresh = term.waiting.emplace_back();
    fresh.rows = rows;
    const std::int64_t bytes = rows * row_bytes;
    for (int slot = 0; slot < runners_[stage]->slots(rows, program.training); ++slot) {
      buffer_bytes_ += bytes;
      if (storage_ == kernels::Storage::none) continue;
      fresh.slots.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes)));
    }
  }
}

void LocalEdges::fill(std::int32_t stage, std::int64_t iteration, std::int32_t micro_batch, Slots& slots) const {
  if (storage_ == kernels::Storage::none || sources_[at(stage)].empty()) return;
  const BoundMicroBatch& to = slots.at(stage, iteration, micro_batch);
  const Graph& graph = *runners_[at(stage)]->graph().graph;
  for (const Source& source : sources_[at(stage)]) {
    const BoundMicroBatch& from = slots.at(source.stage, iteration, micro_batch);
    const void* data = source.received ? from.executable->input(from.slot, source.tensor)
                                       : from.executable->output(from.slot, source.tensor);
    const std::int64_t bytes = to.rows.size() * bytes_per_row(graph.tensor(source.tensor), precision_);
    std::memcpy(to.executable->input(to.slot, source.tensor), data, static_cast<std::size_t>(bytes));
  }
}

std::byte* LocalEdges::waiting(const Term& term, const BoundMicroBatch& place) {
  const auto known = std::find_if(term.waiting.begin(), term.waiting.end(),
                                  [&](const Waiting& of) { return of.rows == place.rows.size(); });
  return known->slots[at(place.slot)].get();
}

void LocalEdges::give(std::int32_t stage, std::int64_t iteration, std::int32_t micro_batch, Slots& slots) {
  if (storage_ == kernels::Storage::none || gifts_[at(stage)].empty()) return;
  const BoundMicroBatch& from = slots.at(stage, iteration, micro_batch);
  for (const Gift& gift : gifts_[at(stage)]) {
    Sum& sum = sums_[at(gift.producer)][gift.sum];
    const BoundMicroBatch& to = slots.at(gift.producer, iteration, micro_batch);
    const std::int64_t bytes = to.rows.size() * sum.row_bytes;
    void* place =
        gift.term == 0 ? to.executable->output_gradient(to.slot, sum.tensor) : waiting(sum.terms[gift.term], to);
    std::memcpy(place, from.executable->input_gradient(from.slot, sum.tensor), static_cast<std::size_t>(bytes));
  }
}

// The term that comes next, if it is of this rank; those from others have been added when they came.
void LocalEdges::add_term(Sum& sum, const BoundMicroBatch& place) {
  Term& term = sum.terms[sum.next];
  if (term.local && sum.next > 0) {
    const std::int64_t bytes = place.rows.size() * sum.row_bytes;
    kernels::add_values(place.executable->output_gradient(place.slot, sum.tensor), waiting(term, place),
                        bytes / kernels::carried_bytes(precision_), precision_);
  }
  ++sum.next;
}

void LocalEdges::add_received(const Transfer& transfer, const BoundMicroBatch& place, const void* data) {
  if (storage_ == kernels::Storage::none) return;
  auto& sums = sums_[at(transfer.to_stage)];
  Sum& sum = *std::find_if(sums.begin(), sums.end(), [&](const Sum& known) { return known.tensor == transfer.tensor; });
  while (sum.terms[sum.next].stage != transfer.from_stage) add_term(sum, place);
  const std::int64_t bytes = transfer.rows.size() * sum.row_bytes;
  auto* to = static_cast<std::byte*>(place.executable->output_gradient(place.slot, sum.tensor)) +
             (transfer.rows.begin - place.rows.begin) * sum.row_bytes;
  if (sum.next == 0) {
    std::memcpy(to, data, static_cast<std::size_t>(bytes));
  } else {
    kernels::add_values(to, data, bytes / kernels::carried_bytes(precision_), precision_);
  }
}

void LocalEdges::complete(std::int32_t stage, const BoundMicroBatch& place) {
  if (storage_ == kernels::Storage::none) return;
  for (Sum& sum : sums_[at(stage)]) {
    while (sum.next < sum.terms.size()) add_term(sum, place);
    sum.next = 0;
  }
}

}  // namespace millrace::runtime
