// Moves every rank as far as it can go; times are maxima of what came before, so the order of visits does not matter.
#include "sim/simulate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/errors.h"
#include "program/liveness.h"

namespace millrace::sim {
namespace {

constexpr double kUnknown = -1.0;

struct RankState {
  std::size_t position = 0;
  double now = 0;
  double busy = 0;
  double reductions_end = 0;         // of the last reduction that has ended
  std::deque<std::int32_t> waiting;  // reductions started and not yet ended, oldest first
  double norm_ready = kUnknown;      // when this rank joined the norm
  std::vector<TimelineRow> rows;
  // When the rank came to each receive of a sender and edge: that is when later ones were posted.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<double>> receive_starts;
};

class Simulator {
 public:
  Simulator(const Graph& graph, const Program& program, const SimCosts& costs)
      : graph_(graph),
        program_(program),
        costs_(costs),
        ranks_(program.ranks.size()),
        sent_(program.transfers.size(), kUnknown),
        reduction_end_(program.buckets.size(), kUnknown) {}

  Simulation run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ready_.push_back(rank);
    while (!ready_.empty()) {
      const std::size_t rank = ready_.front();
      ready_.pop_front();
      while (ranks_[rank].position < list(rank).size() && step(rank)) ++ranks_[rank].position;
    }
    return result();
  }

 private:
  const std::vector<Instruction>& list(std::size_t rank) const { return program_.ranks[rank].instructions; }

  void record(std::size_t rank, double start, double end) {
    RankState& state = ranks_[rank];
    state.rows.push_back({static_cast<std::int32_t>(rank), static_cast<std::int32_t>(state.position),
                          list(rank)[state.position], Seconds(start), Seconds(end)});
    state.now = end;
  }

  void work(std::size_t rank, double start, Seconds duration) {
    ranks_[rank].busy += duration.value();
    record(rank, start, start + duration.value());
  }

  // False when what the instruction needs is not known yet; the rank is woken when it is.
  bool step(std::size_t rank) {
    RankState& state = ranks_[rank];
    const Instruction& at = list(rank)[state.position];
    switch (at.kind) {
      case InstructionKind::send_activation:
      case InstructionKind::send_gradient:
        sent_[static_cast<std::size_t>(at.transfer)] = state.now;
        ready_.push_back(static_cast<std::size_t>(program_.transfers[static_cast<std::size_t>(at.transfer)].receiver));
        record(rank, state.now, state.now);
        return true;
      case InstructionKind::receive_activation:
      case InstructionKind::receive_gradient:
        return receive(rank, at);
      case InstructionKind::reduce_gradients:
        state.waiting.push_back(at.bucket);
        started_[at.bucket].push_back(state.now);
        record(rank, state.now, state.now);
        finish_reductions(at.bucket);
        return true;
      case InstructionKind::reduce_norm:
        return norm(rank);
      case InstructionKind::update_weights:
        return update(rank, at);
      default:
        compute(rank, at);
        return true;
    }
  }

  void compute(std::size_t rank, const Instruction& at) {
    const ProgramStage& stage = program_.stages[static_cast<std::size_t>(at.stage)];
    const auto replica =
        std::find(stage.ranks.begin(), stage.ranks.end(), static_cast<int>(rank)) - stage.ranks.begin();
    const RowInterval rows = stage.rows[static_cast<std::size_t>(at.micro_batch)][static_cast<std::size_t>(replica)];
    const Seconds duration =
        rows.empty() ? Seconds(0) : costs_.compute(at.kind, at.stage, static_cast<int>(rank), rows.size());
    work(rank, ranks_[rank].now, duration);
  }

  // A receive is posted when the rank comes to the one receive_window before it, of the same edge and sender.
  bool receive(std::size_t rank, const Instruction& at) {
    RankState& state = ranks_[rank];
    const Transfer& transfer = program_.transfers[static_cast<std::size_t>(at.transfer)];
    const double sent = sent_[static_cast<std::size_t>(at.transfer)];
    if (sent == kUnknown) return false;
    std::vector<double>& starts = state.receive_starts[{transfer.sender, transfer.edge}];
    starts.push_back(state.now);
    const auto ahead = static_cast<std::size_t>(program_.receive_window);
    const double posted = starts.size() > ahead ? starts[starts.size() - 1 - ahead] : 0.0;
    const std::int64_t elements = graph_.tensor(transfer.tensor).shape.elements_per_sample() * transfer.rows.size();
    const Bytes bytes(elements * costs_.bytes_per_element);
    const Seconds flight = costs_.transfer(bytes, transfer.sender, transfer.receiver);
    record(rank, state.now, std::max(state.now, std::max(sent, posted) + flight.value()));
    return true;
  }

  Bytes bucket_bytes(const Bucket& bucket) const {
    std::int64_t elements = 0;
    for (const TensorId tensor : bucket.tensors) elements += element_count(graph_.tensor(tensor).shape.dims);
    return Bytes(elements * costs_.bytes_per_element);
  }

  // A reduction runs when all owners have started it and it is the oldest that each of them waits for.
  void finish_reductions(std::int32_t first) {
    std::deque<std::int32_t> candidates{first};
    while (!candidates.empty()) {
      const std::int32_t b = candidates.front();
      candidates.pop_front();
      const Bucket& bucket = program_.buckets[static_cast<std::size_t>(b)];
      const std::vector<double>& started = started_[b];
      if (reduction_end_[static_cast<std::size_t>(b)] != kUnknown || started.size() < bucket.owners.size()) continue;
      double start = *std::max_element(started.begin(), started.end());
      bool is_oldest = true;
      for (const int owner : bucket.owners) {
        const RankState& state = ranks_[static_cast<std::size_t>(owner)];
        is_oldest = is_oldest && !state.waiting.empty() && state.waiting.front() == b;
        start = std::max(start, state.reductions_end);
      }
      if (!is_oldest) continue;
      const double end = start + costs_.all_reduce(bucket_bytes(bucket), bucket.owners).value();
      reduction_end_[static_cast<std::size_t>(b)] = end;
      for (const int owner : bucket.owners) {
        RankState& state = ranks_[static_cast<std::size_t>(owner)];
        state.waiting.pop_front();
        state.reductions_end = end;
        if (!state.waiting.empty()) candidates.push_back(state.waiting.front());
        ready_.push_back(static_cast<std::size_t>(owner));
      }
    }
  }

  bool norm(std::size_t rank) {
    RankState& state = ranks_[rank];
    if (!state.waiting.empty()) return false;
    if (state.norm_ready == kUnknown) {
      state.norm_ready = std::max(state.now, state.reductions_end);
      norm_start_ = std::max(norm_start_, state.norm_ready);
      if (++at_norm_ == ranks_.size()) {
        for (std::size_t other = 0; other < ranks_.size(); ++other) ready_.push_back(other);
      }
    }
    if (at_norm_ < ranks_.size()) return false;
    double end = norm_start_;
    if (ranks_.size() > 1) {
      std::vector<int> all(ranks_.size());
      std::iota(all.begin(), all.end(), 0);
      end += costs_.all_reduce(8_B, all).value();
    }
    record(rank, state.now, end);
    return true;
  }

  bool update(std::size_t rank, const Instruction& at) {
    const Bucket& bucket = program_.buckets[static_cast<std::size_t>(at.bucket)];
    double start = ranks_[rank].now;
    if (bucket.owners.size() > 1) {
      const double reduced = reduction_end_[static_cast<std::size_t>(at.bucket)];
      if (reduced == kUnknown) return false;
      start = std::max(start, reduced);
    }
    work(rank, start, costs_.update(bucket_bytes(bucket), static_cast<int>(rank)));
    return true;
  }

  Simulation result() {
    Simulation out;
    double makespan = 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      RankState& state = ranks_[rank];
      if (state.position < list(rank).size()) {
        throw Error(ExitCode::internal, fmt::format("simulation: rank {} waits for ever at instruction {} ({}); the "
                                                    "program does not verify",
                                                    rank, state.position, name(list(rank)[state.position].kind)));
      }
      makespan = std::max(makespan, state.now);
      out.timeline.rows.insert(out.timeline.rows.end(), state.rows.begin(), state.rows.end());
    }
    double idle = 0;
    for (const RankState& state : ranks_) {
      out.busy.emplace_back(state.busy);
      out.idle.emplace_back(makespan - state.busy);
      idle += makespan - state.busy;
    }
    out.iteration_time = Seconds(makespan);
    out.bubble_fraction = makespan > 0 ? idle / (makespan * static_cast<double>(ranks_.size())) : 0.0;
    out.peak_live_micro_batches = peak_live_micro_batches(program_);
    return out;
  }

  const Graph& graph_;
  const Program& program_;
  const SimCosts& costs_;
  std::vector<RankState> ranks_;
  std::vector<double> sent_;                             // by message
  std::map<std::int32_t, std::vector<double>> started_;  // by bucket: when its owners started it
  std::vector<double> reduction_end_;                    // by bucket
  std::size_t at_norm_ = 0;
  double norm_start_ = 0;
  std::deque<std::size_t> ready_;
};

}  // namespace

Simulation simulate(const Graph& graph, const Program& program, const SimCosts& costs) {
  return Simulator(graph, program, costs).run();
}

}  // namespace millrace::sim
