// For each end, extends the segment backwards operator by operator and keeps count of its tensors.
#include "partitioners/common/segments.h"

#include <algorithm>
#include <utility>

#include "graph/footprint.h"

namespace millrace::partitioners {
namespace {

std::vector<std::size_t> positions(const Order& order) {
  std::vector<std::size_t> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[static_cast<std::size_t>(order[i])] = i;
  return position;
}

// Position of the last reader of each tensor; 0 where none reads it (a producer is before its readers).
std::vector<std::size_t> last_readers(const Graph& graph, const std::vector<std::size_t>& position) {
  std::vector<std::size_t> last(graph.tensors().size(), 0);
  for (TensorId id = 0; id < static_cast<TensorId>(last.size()); ++id) {
    for (const OpId reader : graph.consumers(id)) {
      last[static_cast<std::size_t>(id)] =
          std::max(last[static_cast<std::size_t>(id)], position[static_cast<std::size_t>(reader)]);
    }
  }
  return last;
}

// A segment that grows backwards from a fixed end.
class Growing {
 public:
  Growing(const Graph& graph, plan::TrainingBytes sizes, const std::vector<std::size_t>& last_reader)
      : graph_(graph),
        sizes_(sizes),
        last_reader_(last_reader),
        kept_(graph.tensors().size(), false),
        received_(graph.tensors().size(), false),
        owned_(graph.tensors().size(), false),
        saved_(graph.tensors().size(), false) {}

  // `end` is the position behind the segment.
  void add(OpId id, std::size_t end) {
    const Operator& op = graph_.op(id);
    const OpFigures* figures = graph_.figures(id);
    const Saved saved = figures == nullptr ? op.schema->saved(op.attributes, graph_.shapes(id)) : Saved{};
    if (figures != nullptr) segment_.kept_bytes += static_cast<double>(figures->saved_bytes);
    double width = 0;
    for (const TensorId output : op.outputs) {
      width += bytes(output);
      if (received_[index(output)]) {  // it was an input of the segment, now it is the segment's own
        received_[index(output)] = false;
        segment_.received_bytes -= bytes(output);
        --segment_.received_tensors;
        if (!saved_[index(output)]) drop(output);
      }
      const bool read_behind = last_reader_[index(output)] >= end;
      if (read_behind) segment_.sent_bytes += bytes(output);
      if (read_behind || id == graph_.loss()) keep(output);
    }
    for (const TensorId input : op.inputs) {
      width += bytes(input);
      if (graph_.tensor(input).producer >= 0 && !received_[index(input)]) {
        received_[index(input)] = true;
        segment_.received_bytes += bytes(input);
        ++segment_.received_tensors;
      }
      keep(input);
    }
    for (const int i : saved.inputs) saved_[index(op.inputs[static_cast<std::size_t>(i)])] = true;
    for (const int i : saved.outputs) {
      saved_[index(op.outputs[static_cast<std::size_t>(i)])] = true;
      keep(op.outputs[static_cast<std::size_t>(i)]);
    }
    segment_.kept_bytes += static_cast<double>(saved.extra_reals_per_sample * sizes_.real);
    segment_.kept_bytes_once += static_cast<double>(saved.extra_reals_per_micro_batch * sizes_.real);
    segment_.widest_bytes = std::max(segment_.widest_bytes, width);
    for (const TensorId id_owned : op.parameters) {
      if (own(id_owned)) {
        segment_.parameter_elements += static_cast<double>(parameter_elements(graph_.tensor(id_owned)));
      }
    }
    for (const TensorId id_owned : op.buffers) {
      if (own(id_owned)) segment_.buffer_bytes += bytes(id_owned);
    }
  }

  const Segment& segment() const { return segment_; }

 private:
  static std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }
  double bytes(TensorId id) const { return static_cast<double>(tensor_bytes(graph_.tensor(id), sizes_.real).value()); }

  void keep(TensorId id) {
    if (kept_[index(id)]) return;
    kept_[index(id)] = true;
    segment_.kept_bytes += bytes(id);
  }
  void drop(TensorId id) {
    kept_[index(id)] = false;
    segment_.kept_bytes -= bytes(id);
  }
  bool own(TensorId id) {
    if (owned_[index(id)]) return false;
    owned_[index(id)] = true;
    return true;
  }

  const Graph& graph_;
  plan::TrainingBytes sizes_;
  const std::vector<std::size_t>& last_reader_;
  std::vector<bool> kept_, received_, owned_;
  std::vector<bool> saved_;  // read by the backward of an operator of the segment
  Segment segment_;
};

}  // namespace

std::vector<std::size_t> cut_points(const Graph& graph, const Order& order, const std::vector<double>& times,
                                    std::size_t most) {
  std::vector<std::size_t> points{0};
  const std::size_t size = order.size();
  if (size <= most) {
    for (std::size_t i = 1; i <= size; ++i) points.push_back(i);
    return points;
  }
  const std::vector<std::size_t> last = last_readers(graph, positions(order));
  std::vector<double> crossing(size + 1, 0.0);  // as differences first
  double total = 0;
  for (std::size_t i = 0; i < size; ++i) {
    total += times[i];
    for (const TensorId output : graph.op(order[i]).outputs) {
      const std::size_t end = last[static_cast<std::size_t>(output)];
      if (end <= i) continue;
      const auto bytes = static_cast<double>(tensor_bytes(graph.tensor(output), 4).value());
      crossing[i + 1] += bytes;
      if (end + 1 <= size) crossing[end + 1] -= bytes;
    }
  }
  for (std::size_t i = 1; i <= size; ++i) crossing[i] += crossing[i - 1];

  // Operators without time move on too: each weighs at least a little.
  const double share = (total + total * 1e-3) / static_cast<double>(most);
  double passed = 0, part_end = share;
  std::size_t best = 0;
  for (std::size_t i = 1; i < size; ++i) {
    passed += times[i - 1] + total * 1e-3 / static_cast<double>(size);
    if (best == 0 || crossing[i] < crossing[best]) best = i;
    if (passed < part_end) continue;
    points.push_back(best);
    best = 0;
    while (part_end <= passed) part_end += share;
  }
  points.push_back(size);
  return points;
}

SegmentTable::SegmentTable(const Graph& graph, const Order& order, std::vector<std::size_t> points,
                           plan::TrainingBytes sizes)
    : points_(std::move(points)), table_(points_.size() * points_.size()) {
  const std::vector<std::size_t> last = last_readers(graph, positions(order));
  for (std::size_t end = 1; end < points_.size(); ++end) {
    Growing growing(graph, sizes, last);
    for (std::size_t begin = end; begin-- > 0;) {
      for (std::size_t at = points_[begin + 1]; at-- > points_[begin];) growing.add(order[at], points_[end]);
      table_[begin * points_.size() + end] = growing.segment();
    }
  }
}

}  // namespace millrace::partitioners
