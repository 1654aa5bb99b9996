// Numbers messages in the order of their receives and reductions in the order in which each owner starts them.
#include "sim/from_program.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/index.h"
#include "graph/footprint.h"
#include "program/attached.h"
#include "program/buckets.h"
#include "program/factored_gradients.h"
#include "program/kept_versions.h"
#include "program/part_collectives.h"
#include "sim/pieces.h"

namespace millrace::sim {
namespace {

bool is_receive(InstructionKind kind) {
  return kind == InstructionKind::receive_activation || kind == InstructionKind::receive_gradient;
}
bool is_send(InstructionKind kind) {
  return kind == InstructionKind::send_activation || kind == InstructionKind::send_gradient;
}

class Translator {
 public:
  Translator(const Graph& graph, const Program& program, const SimCosts& costs, int iterations)
      : graph_(graph),
        program_(program),
        costs_(costs),
        labels_(unroll(program, iterations)),
        iterations_(iterations),
        places_(program.transfers.size() * at(iterations)) {}

  ProgramJob translate() {
    job_.receive_window = program_.receive_window;
    job_.ports = costs_.ports;
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) job_.add_rank(static_cast<std::int32_t>(r));
    connect();
    find_groups();
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) RankSteps(*this, static_cast<int>(r)).write();
    return {std::move(job_), std::move(labels_)};
  }

 private:
  struct Place {  // of a message
    std::int16_t sender_slot = -1, receiver_slot = -1;
    std::int32_t index = 0;
    bool sent = false;
  };

  const Instruction& instruction(std::size_t rank, UnrolledInstruction at_list) const {
    return program_.ranks[rank].instructions[at(at_list.position)];
  }
  Place& place(const Instruction& message, std::int32_t iteration) {
    return places_[at(message.transfer) * at(iterations_) + at(iteration)];
  }

  void connect() {
    std::map<std::tuple<int, int, int>, std::pair<Place, int>> edges;  // and how many messages so far
    for (std::size_t r = 0; r < labels_.size(); ++r) {
      for (const UnrolledInstruction& listed : labels_[r]) {
        const Instruction& message = instruction(r, listed);
        if (is_send(message.kind)) place(message, listed.iteration).sent = true;
        if (!is_receive(message.kind)) continue;
        const Transfer& transfer = program_.transfers[at(message.transfer)];
        const auto [found, is_new] = edges.try_emplace({transfer.sender, transfer.receiver, transfer.edge});
        auto& [slots, count] = found->second;
        if (is_new) {
          slots.sender_slot = static_cast<std::int16_t>(job_.ranks[at(transfer.sender)].edges.size());
          slots.receiver_slot = static_cast<std::int16_t>(job_.ranks[at(transfer.receiver)].edges.size());
          const Seconds latency = costs_.transfer(0_B, transfer.sender, transfer.receiver);
          const std::int32_t e = job_.connect(transfer.sender, transfer.receiver, latency.value(), 0);
          if (costs_.message_ports) job_.edges[at(e)].ports = costs_.message_ports(transfer.sender, transfer.receiver);
        }
        Place& its = place(message, listed.iteration);
        its.sender_slot = slots.sender_slot;
        its.receiver_slot = slots.receiver_slot;
        its.index = count++;
      }
    }
  }

  using Ports = std::function<std::vector<PortUse>(std::span<const int> ranks)>;

  std::map<int, std::int16_t> join(const std::vector<int>& ranks, const Ports& ports) {
    std::map<int, std::int16_t> slots;
    for (const int rank : ranks) slots[rank] = static_cast<std::int16_t>(job_.ranks[at(rank)].groups.size());
    const std::int32_t g = job_.add_group({ranks.begin(), ranks.end()});
    if (ports) job_.groups[at(g)].ports = ports(ranks);
    return slots;
  }

  // The ranks of one replica of a tensor-parallel stage.
  static std::vector<int> shards(const ProgramStage& stage, std::size_t replica) {
    const auto size = static_cast<std::ptrdiff_t>(stage.tensor_parallel);
    const auto from = stage.ranks.begin() + static_cast<std::ptrdiff_t>(replica) * size;
    return {from, from + size};
  }

  void find_groups() {
    for (const Bucket& bucket : program_.buckets) {
      if (bucket.owners.size() < 2 || owners_.contains(bucket.owners)) continue;
      owners_[bucket.owners] =
          join(bucket.owners, costs_.reduction_ports ? costs_.reduction_ports : costs_.collective_ports);
    }
    for (const ProgramStage& stage : program_.stages) {
      if (stage.tensor_parallel == 1) continue;
      for (std::size_t r = 0; r < stage.ranks.size() / at(stage.tensor_parallel); ++r) {
        const std::vector<int> ranks = shards(stage, r);
        if (!tensor_.contains(ranks)) tensor_[ranks] = join(ranks, costs_.collective_ports);
      }
    }
    all_.resize(program_.ranks.size());
    std::iota(all_.begin(), all_.end(), 0);
    if (all_.size() > 1 && program_.training) norm_ = join(all_, costs_.collective_ports);
  }

  Seconds reduction_of(const Bucket& bucket) const {
    const FactoredShape factors = factored_shape(graph_, bucket);
    const Bytes bytes = factors.rows > 0 ? Bytes(factors.elements() * costs_.bytes_per_element) : bytes_of(bucket);
    if (is_sharded(program_, bucket)) {
      return costs_.collective(InstructionKind::reduce_scatter, bytes, bucket.owners);
    }
    if (costs_.reduction) return costs_.reduction(bytes, bucket.owners);
    return costs_.collective(InstructionKind::all_reduce, bytes, bucket.owners);
  }

  Bytes bytes_of(const Bucket& bucket) const {
    Bytes bytes;
    for (const TensorId tensor : bucket.tensors) {
      const ProgramStage* stage = bucket.stages.empty() ? nullptr : &program_.stages[at(bucket.stages.front())];
      if (stage != nullptr && stage->parts != nullptr) {
        const TensorId part = stage->parts->part_of.at(tensor);
        const Graph& of_part = *stage->parts->devices[at(bucket.shard)].graph;
        bytes += tensor_bytes(of_part.tensor(part), costs_.bytes_per_element);
        continue;
      }
      const int parts = stage == nullptr ? 1 : shards_of(*stage, tensor);
      bytes += Bytes(tensor_bytes(graph_.tensor(tensor), costs_.bytes_per_element).value() / parts);
    }
    return bytes;
  }

  // Writes the steps of one rank.
  class RankSteps {
   public:
    RankSteps(Translator& all, int rank) : all_(all), rank_(rank) {}

    void write() {
      const std::vector<UnrolledInstruction>& list = all_.labels_[at(rank_)];
      for (std::size_t i = 0; i < list.size(); ++i) {
        add(all_.instruction(at(rank_), list[i]), list[i], static_cast<std::int32_t>(i));
        if (gathers_ && (i + 1 == list.size() || list[i + 1].iteration != list[i].iteration))
          end_round(static_cast<std::int32_t>(i));
      }
      all_.job_.add_program(std::move(steps_));
    }

   private:
    void add(const Instruction& instruction, UnrolledInstruction listed, std::int32_t label) {
      switch (instruction.kind) {
        case InstructionKind::send_activation:
        case InstructionKind::send_gradient:
          send(instruction, listed.iteration, label);
          break;
        case InstructionKind::receive_activation:
        case InstructionKind::receive_gradient:
          receive(instruction, listed, label);
          break;
        case InstructionKind::reduce_gradients:
        case InstructionKind::update_weights:
        case InstructionKind::gather_weights:
          if (!inside_.contains(label)) of_bucket(instruction, label);
          break;
        case InstructionKind::reduce_norm:
          norm(label);
          break;
        case InstructionKind::all_reduce:
        case InstructionKind::all_gather:
        case InstructionKind::reduce_scatter:
        case InstructionKind::all_to_all:
          collective(instruction, listed, label);
          break;
        case InstructionKind::stash_weights:
        case InstructionKind::load_weights:
        case InstructionKind::drop_stash:
          note_stash(instruction, listed.iteration);
          steps_.push_back({.label = label});
          break;
        default:
          compute(instruction, listed, label);
      }
    }

    void send(const Instruction& instruction, std::int32_t iteration, std::int32_t label) {
      const Transfer& transfer = all_.program_.transfers[at(instruction.transfer)];
      const Place& place = all_.place(instruction, iteration);
      const Bytes bytes =
          transfer.rows.size() * tensor_bytes(all_.graph_.tensor(transfer.tensor), all_.costs_.bytes_per_element);
      const Seconds alone = all_.costs_.transfer(bytes, transfer.sender, transfer.receiver);
      const Seconds latency = all_.costs_.transfer(0_B, transfer.sender, transfer.receiver);
      steps_.push_back({.kind = StepKind::send,
                        .slot = place.sender_slot,
                        .index = place.index,
                        .seconds = (alone - latency).value(),
                        .bytes = bytes.value(),
                        .label = label});
    }

    void receive(const Instruction& instruction, UnrolledInstruction listed, std::int32_t label) {
      const Place& place = all_.place(instruction, listed.iteration);
      if (!place.sent) {
        throw Error(ExitCode::internal, fmt::format("simulation: rank {} waits for ever at instruction {} ({}), a "
                                                    "message that nobody sends; the program does not verify",
                                                    rank_, listed.position, name(instruction.kind)));
      }
      steps_.push_back({.kind = StepKind::receive, .slot = place.receiver_slot, .index = place.index, .label = label});
    }

    void of_bucket(const Instruction& instruction, std::int32_t label) {
      const Bucket& bucket = all_.program_.buckets[at(instruction.bucket)];
      if (instruction.kind == InstructionKind::update_weights) return update(instruction, label);
      if (instruction.kind == InstructionKind::gather_weights) {
        gathers_ = true;
        return start(bucket, all_.costs_.collective(InstructionKind::all_gather, all_.bytes_of(bucket), bucket.owners),
                     label);
      }
      started_[instruction.bucket] = in_group_[all_.owners_.at(bucket.owners).at(rank_)];
      start(bucket, all_.reduction_of(bucket), label);
    }

    void start(const Bucket& bucket, Seconds time, std::int32_t label) {
      const std::int16_t slot = all_.owners_.at(bucket.owners).at(rank_);
      steps_.push_back({.kind = StepKind::start_collective,
                        .traffic = Traffic::gradients,
                        .slot = slot,
                        .index = in_group_[slot]++,
                        .seconds = time.value(),
                        .label = label});
    }

    // Weights in parts are not read before all parts are there.
    void end_round(std::int32_t label) {
      gathers_ = false;
      steps_.push_back({.kind = StepKind::wait_started, .traffic = Traffic::gradients, .label = label});
    }

    void norm(std::int32_t label) {
      steps_.push_back({.kind = StepKind::wait_started, .traffic = Traffic::gradients, .label = label});
      if (all_.norm_.empty()) return;
      steps_.push_back({.kind = StepKind::collective,
                        .traffic = Traffic::gradients,
                        .slot = all_.norm_.at(rank_),
                        .seconds = all_.costs_.collective(InstructionKind::all_reduce, 8_B, all_.all_).value(),
                        .label = label});
    }

    void update(const Instruction& instruction, std::int32_t label) {
      const Bucket& bucket = all_.program_.buckets[at(instruction.bucket)];
      if (bucket.owners.size() > 1) {
        steps_.push_back({.kind = StepKind::wait_collective,
                          .traffic = Traffic::gradients,
                          .slot = all_.owners_.at(bucket.owners).at(rank_),
                          .index = started_.at(instruction.bucket),
                          .label = label});
      }
      const auto parts = static_cast<std::int64_t>(is_sharded(all_.program_, bucket) ? bucket.owners.size() : 1);
      Seconds time = all_.costs_.update(Bytes(all_.bytes_of(bucket).value() / parts), rank_);
      if (overwrites_stash(instruction.bucket)) time += all_.costs_.copy(all_.bytes_of(bucket), rank_);
      steps_.push_back({.seconds = time.value(), .label = label});
    }

    void note_stash(const Instruction& instruction, std::int32_t iteration) {
      KeptVersions& versions = versions_[instruction.stage];
      if (instruction.kind == InstructionKind::stash_weights) versions.stash(iteration, instruction.micro_batch);
      if (instruction.kind == InstructionKind::drop_stash) versions.drop(iteration, instruction.micro_batch);
    }

    bool overwrites_stash(std::int32_t bucket) {
      bool copies = false;
      for (const std::int32_t stage : all_.program_.buckets[at(bucket)].stages) {
        const auto versions = versions_.find(stage);
        if (versions != versions_.end() && versions->second.update(bucket)) copies = true;
      }
      return copies;
    }

    RowInterval rows(const ProgramStage& stage, std::int32_t micro_batch) const {
      return stage.rows[at(micro_batch)][stage.replica_of(place_in(stage))];
    }
    std::size_t place_in(const ProgramStage& stage) const {
      return at(std::find(stage.ranks.begin(), stage.ranks.end(), rank_) - stage.ranks.begin());
    }

    const std::vector<Instruction>& list() const { return all_.program_.ranks[at(rank_)].instructions; }

    void collective(const Instruction& instruction, UnrolledInstruction listed, std::int32_t label) {
      const TensorCollective& its = all_.program_.collectives[at(instruction.collective)];
      const ProgramStage& stage = all_.program_.stages[at(instruction.stage)];
      const std::vector<int> ranks = shards(stage, stage.replica_of(place_in(stage)));
      const Bytes bytes(its.row_bytes * rows(stage, instruction.micro_batch).size());
      Step step{.kind = StepKind::collective,
                .traffic = Traffic::tensor,
                .slot = all_.tensor_.at(ranks).at(rank_),
                .seconds = all_.costs_.collective(instruction.kind, bytes, ranks).value(),
                .label = label};
      const bool beside = its.beside_weights && held_ == its.op;
      if (!beside) catch_up(instruction, listed, label);
      if (beside) {
        step.kind = StepKind::start_collective;
        step.index = in_group_[step.slot]++;
        under_way_.push_back(step);
      }
      steps_.push_back(step);
    }

    void spend(const Instruction& instruction, InstructionKind kind, std::span<const OpId> ops, std::int32_t label) {
      const std::int64_t count = rows(all_.program_.stages[at(instruction.stage)], instruction.micro_batch).size();
      const Piece piece{.kind = kind, .stage = instruction.stage, .rank = rank_, .rows = count, .ops = ops};
      steps_.push_back({.seconds = time_of(piece, all_.program_, all_.costs_).value(), .label = label});
    }

    // What is attached stands behind the last segment of a computation that collectives divide.
    std::vector<std::size_t> attached_behind(UnrolledInstruction listed) const {
      auto last = at(listed.position);
      for (std::size_t i = last + 1; i < list().size(); ++i) {
        const bool goes_on = list()[i].collective >= 0 || list()[i].segment > list()[last].segment;
        const bool divided = list()[last].segment >= 0 && list()[last].kind != InstructionKind::backward_weight;
        if (!goes_on || !divided) break;
        if (list()[i].collective < 0) last = i;
      }
      return attached_to(list(), last);
    }

    // The list between a computation and what is attached to it is all there: both belong to the same iteration.
    void start_inside(std::size_t position, UnrolledInstruction listed, std::int32_t label) {
      const auto its = label + static_cast<std::int32_t>(position) - listed.position;
      if (inside_.insert(its).second) of_bucket(list()[position], its);
    }

    // The weight gradients that collectives pass beside, and the wait for these.
    void catch_up(const Instruction& instruction, UnrolledInstruction listed, std::int32_t label) {
      if (held_ < 0) return;
      spend(instruction, InstructionKind::backward_weight, {&held_, 1}, label);
      for (const std::size_t position : attached_behind(listed)) {
        if (list()[position].op < held_) break;
        start_inside(position, listed, label);
      }
      for (Step step : under_way_) {
        step.kind = StepKind::wait_collective;
        steps_.push_back(step);
      }
      under_way_.clear();
      held_ = -1;
    }

    // Whether collectives begin behind `ops` that the weight gradients of the first of them pass beside.
    bool is_held(const Instruction& instruction, std::span<const OpId> ops, UnrolledInstruction listed) const {
      if (instruction.kind != InstructionKind::backward || instruction.segment < 0 || ops.empty()) return false;
      const std::size_t next = at(listed.position) + 1;
      if (next >= list().size() || list()[next].collective < 0) return false;
      const TensorCollective& its = all_.program_.collectives[at(list()[next].collective)];
      return its.beside_weights && its.op == ops.front();
    }

    void compute(const Instruction& instruction, UnrolledInstruction listed, std::int32_t label) {
      std::span<const OpId> ops = ops_of(all_.program_, instruction);
      const bool more = at(listed.position) + 1 < list().size() && list()[at(listed.position) + 1].collective >= 0;
      if (!ops.empty() || !more) catch_up(instruction, listed, label);
      const bool held = is_held(instruction, ops, listed);
      const OpId lowest = more ? (ops.empty() ? std::numeric_limits<OpId>::max() : ops.front() + (held ? 1 : 0)) : 0;
      bool any = false;
      // Gradients are complete from the last operator on: what stands behind the cut runs first.
      for (const std::size_t position : attached_behind(listed)) {
        if (list()[position].op < lowest) break;  // they start in the order of the list
        if (inside_.contains(label + static_cast<std::int32_t>(position) - listed.position)) continue;
        const auto cut = std::lower_bound(ops.begin(), ops.end(), list()[position].op);
        if (cut != ops.end()) spend(instruction, instruction.kind, {cut, ops.end()}, label);
        ops = {ops.begin(), cut};
        start_inside(position, listed, label);
        any = true;
      }
      if (held) {
        held_ = ops.front();
        if (ops.size() > 1) spend(instruction, instruction.kind, ops.subspan(1), label);
        spend(instruction, InstructionKind::backward_input, {&held_, 1}, label);
      } else if (!ops.empty() || !any) {
        spend(instruction, instruction.kind, ops, label);
      }
    }

    Translator& all_;
    int rank_;
    std::vector<Step> steps_;
    std::map<std::int32_t, std::int32_t> started_;   // by bucket: number of its last reduction in its group
    std::map<std::int16_t, std::int32_t> in_group_;  // by slot: reductions so far
    std::map<std::int32_t, KeptVersions> versions_;  // by stage
    std::set<std::int32_t> inside_;                  // labels of what has happened inside of a computation
    bool gathers_ = false;                           // gathers are under way
    OpId held_ = -1;                                 // whose weight gradients collectives under way pass beside
    std::vector<Step> under_way_;
  };

  const Graph& graph_;
  const Program& program_;
  const SimCosts& costs_;
  Labels labels_;
  int iterations_;
  Job job_;
  std::vector<Place> places_;
  std::map<std::vector<int>, std::map<int, std::int16_t>> owners_, tensor_;
  std::vector<int> all_;
  std::map<int, std::int16_t> norm_;
};

}  // namespace

ProgramJob job_of(const Graph& graph, const Program& program, const SimCosts& costs, int iterations) {
  return Translator(graph, program, costs, iterations).translate();
}

}  // namespace millrace::sim
