// Prefix sums, and rows of what straddles each cut point.
#include "partitioners/common/segments.h"

#include <algorithm>
#include <span>
#include <utility>

#include "graph/footprint.h"
#include "plan/memory.h"

namespace millrace::partitioners {
namespace {

std::size_t index(auto id) { return static_cast<std::size_t>(id); }

void accumulate(std::vector<double>& sums) {  // sums[i + 1] holds what item i adds
  for (std::size_t i = 1; i < sums.size(); ++i) sums[i] += sums[i - 1];
}

std::vector<std::uint32_t> items_of(const Order& order, const std::vector<std::size_t>& points) {
  std::vector<std::uint32_t> item(order.size());
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    for (std::size_t k = points[i]; k < points[i + 1]; ++k) item[index(order[k])] = static_cast<std::uint32_t>(i);
  }
  return item;
}

// Items in which operators read or own the tensor, ascending, each once.
void readers(const Graph& graph, TensorId id, const std::vector<std::uint32_t>& item,
             std::vector<std::uint32_t>& items) {
  items.clear();
  for (const OpId op : graph.consumers(id)) items.push_back(item[index(op)]);
  if (items.size() < 2) return;
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

Segments::Segments(const Graph& graph, const GraphBytes& bytes, const Order& order, std::vector<std::size_t> points)
    : points_(std::move(points)), memory_(!bytes.beside.empty()) {
  const std::vector<std::uint32_t> item = items_of(order, points_);
  for (auto* sums : {&elements_, &gradients_, &sources_, &kept_, &kept_once_, &borders_}) {
    sums->assign(points_.size(), 0.0);
  }
  count_owned(graph, bytes, item);
  count_activations(graph, bytes, item);
  if (memory_) count_memory(graph, bytes, order, item);
  for (auto* sums : {&elements_, &gradients_, &sources_, &kept_, &kept_once_, &borders_}) accumulate(*sums);
  if (memory_) count_passing(graph, bytes, order);
}

// Each item that uses a tensor adds it; a segment with two neighbouring users has it twice, so the later of the two
// takes it off again, and where the earlier one is before the segment the pair straddles its begin and adds it.
void Segments::count_owned(const Graph& graph, const GraphBytes& bytes, const std::vector<std::uint32_t>& item) {
  std::vector<Tied> pairs;
  std::vector<std::uint32_t> users;
  const auto count = [&](TensorId id, double elements, double gradient, double source) {
    readers(graph, id, item, users);
    if (users.empty()) return;
    elements_[users[0] + 1] += elements;
    gradients_[users[0] + 1] += gradient;
    sources_[users[0] + 1] += source;
    for (std::size_t i = 1; i < users.size(); ++i)
      pairs.push_back({users[i - 1] + 1, users[i], {elements, gradient, source}});
  };
  for (const TensorId id : graph.parameters()) {
    count(id, static_cast<double>(parameter_elements(graph.tensor(id))), bytes.tensor[index(id)], 0);
  }
  for (const TensorId id : graph.buffers()) count(id, 0, bytes.tensor[index(id)], 0);
  for (const auto sources : {graph.inputs(), graph.labels()}) {
    for (const TensorId id : sources) count(id, 0, 0, bytes.tensor[index(id)]);
  }
  shared_ = StepRows<3>(points_.size(), std::move(pairs));
}

void Segments::count_activations(const Graph& graph, const GraphBytes& bytes, const std::vector<std::uint32_t>& item) {
  std::vector<StepRows<2>::Thing> received;
  std::vector<StepRows<3>::Thing> sent;
  std::vector<std::uint32_t> users;
  const auto last = static_cast<std::uint32_t>(items());
  for (TensorId id = 0; id < static_cast<TensorId>(graph.tensors().size()); ++id) {
    const OpId producer = graph.tensor(id).producer;
    if (producer < 0) continue;
    const std::uint32_t made = item[index(producer)];
    readers(graph, id, item, users);
    if (users.empty() || users.back() == made) continue;
    const double size = bytes.tensor[index(id)];
    std::uint32_t from = made + 1;
    for (const std::uint32_t user : users) {
      if (user == made) continue;
      received.push_back({from, user, {size, 1.0}});
      from = user + 1;
    }
    if (!memory_) continue;
    sent.push_back({last - users.back(),
                    last - 1 - made,
                    {size, bytes.saved[index(id)] ? 0.0 : size, bytes.starts_segment[index(id)] ? 0.0 : size}});
  }
  received_ = StepRows<2>(points_.size(), std::move(received));
  if (memory_) sent_ = StepRows<3>(points_.size(), std::move(sent));
}

// A tensor that some backward reads is kept wherever it is made: by that operator, or for the border.
void Segments::count_memory(const Graph& graph, const GraphBytes& bytes, const Order& order,
                            const std::vector<std::uint32_t>& item) {
  std::vector<double> passing(items(), 0.0), recomputed(items(), 0.0), recomputed_once(items(), 0.0);
  // A stage runs its operators in the graph's order: a tensor is alive from its producer there to its last reader.
  std::vector<double> alive(order.size() + 1, 0.0);  // as differences
  for (const OpId op : order) {
    const std::size_t here = item[index(op)];
    kept_[here + 1] += bytes.beside[index(op)];
    kept_once_[here + 1] += bytes.beside_once[index(op)];
    recomputed[here] = std::max(recomputed[here], bytes.recomputed[index(op)]);
    recomputed_once[here] = std::max(recomputed_once[here], bytes.recomputed_once[index(op)]);
    for (const TensorId output : graph.op(op).outputs) {
      const double size = bytes.tensor[index(output)];
      if (bytes.saved[index(output)]) kept_[here + 1] += size;
      if (bytes.starts_segment[index(output)]) borders_[here + 1] += size;
      OpId last = op;
      for (const OpId reader : graph.consumers(output)) last = std::max(last, reader);
      alive[index(op)] += size;
      alive[index(last) + 1] -= size;
    }
  }
  double now = 0;
  for (std::size_t op = 0; op < order.size(); ++op) {
    now += alive[op];
    passing[item[op]] = std::max(passing[item[op]], now);
  }
  passing_ = RangeMaximum(std::move(passing));
  recomputed_ = RangeMaximum(std::move(recomputed));
  recomputed_once_ = RangeMaximum(std::move(recomputed_once));
}

void Segments::count_passing(const Graph& graph, const GraphBytes& bytes, const Order& order) {
  constexpr double kMostSteps = 3e4;  // some tens of milliseconds
  const auto size = static_cast<double>(order.size()), cuts = static_cast<double>(points_.size());
  if (size * cuts * cuts / 6 > kMostSteps) return;
  const plan::AnalyticBytes analytic(graph, bytes.sizes);
  exact_passing_.assign(points_.size() * points_.size(), 0.0);
  exact_recomputed_ = exact_passing_;
  for (std::size_t begin = 0; begin < items(); ++begin) {
    for (std::size_t end = begin + 1; end <= items(); ++end) {
      std::vector<OpId> ops(order.begin() + static_cast<std::ptrdiff_t>(points_[begin]),
                            order.begin() + static_cast<std::ptrdiff_t>(points_[end]));
      std::sort(ops.begin(), ops.end());
      const std::size_t cell = begin * points_.size() + end;
      exact_passing_[cell] = static_cast<double>(analytic.footprint(ops, 1).workspace.value());
      exact_recomputed_[cell] =
          static_cast<double>(analytic.footprint(ops, 1, ops).workspace.value()) - exact_passing_[cell];
    }
  }
}

Segment Segments::at(std::size_t begin, std::size_t end) const {
  const auto sum = [&](const std::vector<double>& sums) { return sums[end] - sums[begin]; };
  Segment segment;
  const auto& tied = shared_.at(begin, end);
  segment.parameter_elements = sum(elements_) + tied[0];
  segment.gradient_bytes = sum(gradients_) + tied[1];
  segment.received_bytes = received(begin, end)[0];
  segment.received_tensors = received(begin, end)[1];
  if (!memory_) return segment;
  const auto& sent = sent_.at(items() - end, items() - begin);
  const double inputs = segment.received_bytes + sum(sources_) + tied[2];
  segment.sent_bytes = sent[0];
  segment.kept_bytes = inputs + sum(kept_) + sent[1];
  segment.kept_once = sum(kept_once_);
  segment.border_bytes = inputs + sum(borders_) + sent[2];
  if (exact_passing_.empty()) {
    segment.passing_bytes = passing_.at(begin, end);
    segment.recomputed_bytes = recomputed_.at(begin, end);
    segment.recomputed_once = recomputed_once_.at(begin, end);
  } else {
    segment.passing_bytes = exact_passing_[begin * points_.size() + end];
    segment.recomputed_bytes = exact_recomputed_[begin * points_.size() + end];
  }
  return segment;
}

}  // namespace millrace::partitioners
