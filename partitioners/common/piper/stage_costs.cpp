// Sums over prefixes; the edges at both ends of a segment are few and are looked at one by one.
#include "partitioners/common/piper/stage_costs.h"

#include <algorithm>
#include <limits>
#include <set>

namespace millrace::partitioners {
namespace {

using FileVariant = TensorParallelModel::Variant;

double larger_sync(const plan::PiperVariants& variants, bool forward, OpId neighbour) {
  double most = 0;
  for (const FileVariant* variant : {variants.plain, variants.recompute}) {
    if (variant == nullptr) continue;
    most = std::max(most, plan::piper_sync(forward ? variant->sync_forward : variant->sync_backward, neighbour));
  }
  return most;
}

}  // namespace

PiperStageCosts::PiperStageCosts(const plan::PiperQuestion& question, const Prefixes& prefixes)
    : question_(question), prefixes_(&prefixes) {
  std::set<int> degrees;
  for (const auto& of : question.model->ops) {
    for (const TensorParallelModel::Degree& degree : of) {
      degrees.insert(degree.degree);
      exact_ = exact_ && degree.variants.size() <= 2;
    }
  }
  degrees_.assign(degrees.begin(), degrees.end());
  const auto ops = static_cast<OpId>(question.model->ops.size());
  for (const int degree : degrees_) {
    parameters_.emplace_back(static_cast<std::size_t>(ops), 0);
    choices_.emplace_back();
    for (OpId op = 0; op < ops; ++op) choices_.back().push_back(choice(op, degree));
  }
  add_prefix_sums(prefixes);
  add_borders(prefixes);
}

PiperChoice PiperStageCosts::choice(OpId op, int degree) {
  const plan::PiperVariants variants = plan::piper_variants(*question_.model, op, degree);
  if (variants.plain == nullptr) return {};
  const FileVariant *faster = variants.plain, *other = variants.recompute;
  if (other != nullptr && other->time_per_sample < faster->time_per_sample) std::swap(faster, other);
  PiperChoice choice{.offered = true,
                     .seconds = faster->time_per_sample / question_.speed,
                     .memory_a = faster->memory_a,
                     .memory_b = faster->memory_b,
                     .faster_is_recompute = faster != variants.plain};
  double& parameters = parameters_.back()[static_cast<std::size_t>(op)];
  parameters = faster->parameter_bytes;
  if (other == nullptr) return choice;
  choice.has_other = true;
  choice.extra_seconds = (other->time_per_sample - faster->time_per_sample) / question_.speed;
  choice.saved_a = faster->memory_a - other->memory_a;
  choice.saved_b = faster->memory_b - other->memory_b;
  exact_ = exact_ && other->parameter_bytes == parameters && other->sync_forward == faster->sync_forward &&
           other->sync_backward == faster->sync_backward;
  parameters = std::max(parameters, other->parameter_bytes);
  return choice;
}

void PiperStageCosts::add_prefix_sums(const Prefixes& prefixes) {
  const std::size_t ops = question_.model->ops.size();
  std::vector<double> least(ops, std::numeric_limits<double>::infinity());
  for (std::size_t t = 0; t < degrees_.size(); ++t) {
    missing_.emplace_back(prefixes.size(), 0);
    sums_.emplace_back(prefixes.size());
    for (std::size_t op = 0; op < ops; ++op) {
      if (choices_[t][op].offered) least[op] = std::min(least[op], choices_[t][op].seconds * degrees_[t]);
    }
    for (std::size_t p = 0; p < prefixes.size(); ++p) {
      PiperSegment& sum = sums_[t][p];
      for (std::size_t op = 0; op < ops; ++op) {
        if (!prefixes.has(p, static_cast<int>(op))) continue;
        const PiperChoice& choice = choices_[t][op];
        if (!choice.offered) ++missing_[t][p];
        sum.seconds += choice.seconds;
        sum.parameter_bytes += parameters_[t][op];
        sum.memory_a += choice.memory_a;
        sum.memory_b += choice.memory_b;
      }
    }
  }
  for (std::size_t p = 0; p < prefixes.size(); ++p) {
    least_work_.push_back(0);
    for (std::size_t op = 0; op < ops; ++op) {
      if (prefixes.has(p, static_cast<int>(op))) least_work_.back() += least[op];
    }
  }
}

void PiperStageCosts::add_borders(const Prefixes& prefixes) {
  for (const TensorParallelModel::Edge& edge : question_.model->edges) {
    Border border{.from = edge.from, .to = edge.to, .sent = {}, .received = {}};
    for (const int degree : degrees_) {
      const plan::PiperVariants sender = plan::piper_variants(*question_.model, edge.from, degree);
      const plan::PiperVariants receiver = plan::piper_variants(*question_.model, edge.to, degree);
      border.sent.push_back(2 * (edge.bytes + larger_sync(sender, false, edge.to)) / question_.bytes_per_second);
      border.received.push_back(2 * (edge.bytes + larger_sync(receiver, true, edge.from)) / question_.bytes_per_second);
    }
    borders_.push_back(std::move(border));
  }
  leaving_.resize(prefixes.size());
  for (std::size_t p = 0; p < prefixes.size(); ++p) {
    for (std::size_t b = 0; b < borders_.size(); ++b) {
      if (prefixes.has(p, borders_[b].from) && !prefixes.has(p, borders_[b].to)) {
        leaving_[p].push_back(static_cast<int>(b));
      }
    }
  }
}

PiperSegment PiperStageCosts::segment(std::size_t degree, std::size_t from, std::size_t to) const {
  const PiperSegment &before = sums_[degree][from], &after = sums_[degree][to];
  PiperSegment segment{.seconds = after.seconds - before.seconds,
                       .border_seconds = 0,
                       .parameter_bytes = after.parameter_bytes - before.parameter_bytes,
                       .memory_a = after.memory_a - before.memory_a,
                       .memory_b = after.memory_b - before.memory_b};
  for (const int b : leaving_[from]) {
    const Border& border = borders_[static_cast<std::size_t>(b)];
    if (prefixes_->has(to, border.to)) segment.border_seconds += border.received[degree];
  }
  for (const int b : leaving_[to]) {
    const Border& border = borders_[static_cast<std::size_t>(b)];
    if (!prefixes_->has(from, border.from)) segment.border_seconds += border.sent[degree];
  }
  return segment;
}

}  // namespace millrace::partitioners
