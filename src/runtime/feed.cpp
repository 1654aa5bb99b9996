// From sample numbers to rows of executables.
#include "runtime/feed.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "graph/width.h"
#include "kernels/bf16/numbers.h"

namespace millrace::runtime {
namespace {

bool reads(const Graph& graph, const std::vector<OpId>& ops, Role role) {
  return std::any_of(ops.begin(), ops.end(), [&](OpId op) {
    const auto& inputs = graph.op(op).inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](TensorId t) { return graph.tensor(t).role == role; });
  });
}

void append_rows(const ProgramStage& stage, int rank, std::vector<RowInterval>& into) {
  const auto place = std::find(stage.ranks.begin(), stage.ranks.end(), rank) - stage.ranks.begin();
  const std::size_t replica = stage.replica_of(static_cast<std::size_t>(place));
  for (const auto& micro_batch : stage.rows) {
    const RowInterval rows = micro_batch[replica];
    if (!rows.empty()) into.push_back(rows);
  }
}

void append_ids(const std::vector<RowInterval>& intervals, const dataset::Batch& batch,
                std::vector<std::int64_t>& into) {
  into.clear();
  for (const RowInterval rows : intervals) {
    into.insert(into.end(), batch.ids.begin() + rows.begin, batch.ids.begin() + rows.end);
  }
}

// Rows before `begin` among the intervals read.
std::int64_t offset_of(const std::vector<RowInterval>& intervals, std::int64_t begin) {
  std::int64_t offset = 0;
  for (const RowInterval rows : intervals) {
    if (rows.begin == begin) return offset;
    offset += rows.size();
  }
  return offset;
}

template <class From>
void copy_rows(const From* from, std::int64_t count, void* to, const Tensor& tensor, kernels::Precision precision) {
  if (tensor.shape.element == ElementType::index) {
    std::copy_n(from, count, static_cast<std::int32_t*>(to));
  } else if (precision == kernels::Precision::bf16 && !is_wide(tensor)) {
    std::transform(from, from + count, static_cast<kernels::Bf16*>(to),
                   [](From value) { return kernels::to_bf16(static_cast<float>(value)); });
  } else if (precision == kernels::Precision::fp64) {
    std::copy_n(from, count, static_cast<double*>(to));
  } else {
    std::copy_n(from, count, static_cast<float*>(to));
  }
}

}  // namespace

Feed::Feed(const Graph& graph, std::vector<const Program*> programs, int rank, const dataset::Source& source,
           dataset::Split split, const dataset::SampleOrder& order)
    : graph_(graph), source_(source), split_(split), order_(order), reader_order_(order) {
  for (const Program* program : programs) {
    Needs needs;
    needs.batch = program->batch;
    for (const ProgramStage& stage : program->stages) {
      if (std::find(stage.ranks.begin(), stage.ranks.end(), rank) == stage.ranks.end()) continue;
      if (reads(graph, stage.ops, Role::input)) append_rows(stage, rank, needs.inputs);
      if (reads(graph, stage.ops, Role::label)) append_rows(stage, rank, needs.labels);
    }
    needs_.push_back(std::move(needs));
  }
}

const Feed::Needs& Feed::needs_of(std::size_t rows) const {
  const auto needs = std::find_if(needs_.begin(), needs_.end(),
                                  [&](const Needs& n) { return n.batch == static_cast<std::int64_t>(rows); });
  if (needs == needs_.end()) throw Error(ExitCode::internal, fmt::format("no program for a batch of {} rows", rows));
  return *needs;
}

void Feed::request(const dataset::Batch& batch, dataset::RowRequest& request) const {
  const Needs& needs = needs_of(batch.ids.size());
  append_ids(needs.inputs, batch, request.input_ids);
  append_ids(needs.labels, batch, request.label_ids);
}

void Feed::start(std::int64_t first, std::int64_t steps) {
  prefetcher_.reset();
  step_ = first;
  const bool any =
      std::any_of(needs_.begin(), needs_.end(), [](const Needs& n) { return !n.inputs.empty() || !n.labels.empty(); });
  if (!any) return;  // a stage in the middle reads no data
  prefetcher_.emplace(source_, split_, [this, first, steps](std::int64_t position, dataset::RowRequest& rows) {
    if (position >= steps) return false;
    reader_order_.batch(first + position, reader_batch_);
    request(reader_batch_, rows);
    return true;
  });
}

const dataset::Batch& Feed::next() {
  order_.batch(step_++, batch_);
  rows_ = prefetcher_ ? prefetcher_->next() : nullptr;
  return batch_;
}

void Feed::fill(const StageGraph& stage, const BoundMicroBatch& at, kernels::Precision precision) const {
  for (const TensorId id : stage.inputs) {
    const Tensor& tensor = graph_.tensor(id);
    if (tensor.role != Role::input && tensor.role != Role::label) continue;
    const Needs& needs = needs_of(batch_.ids.size());
    void* to = at.executable->input(at.slot, id);
    if (to == nullptr) return;  // the tensors do not exist
    const std::int64_t size = tensor.shape.elements_per_sample();
    const std::int64_t count = at.rows.size() * size;
    if (tensor.role == Role::label) {
      copy_rows(rows_->labels.data() + offset_of(needs.labels, at.rows.begin) * size, count, to, tensor, precision);
    } else if (tensor.shape.element == ElementType::index) {
      copy_rows(rows_->index_inputs.data() + offset_of(needs.inputs, at.rows.begin) * size, count, to, tensor,
                precision);
    } else {
      copy_rows(rows_->real_inputs.data() + offset_of(needs.inputs, at.rows.begin) * size, count, to, tensor,
                precision);
    }
  }
}

}  // namespace millrace::runtime
