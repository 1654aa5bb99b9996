// Numbers messages in the order of their receives and reductions in the order in which each owner starts them.
#include "sim/from_program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::sim {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

bool is_receive(InstructionKind kind) {
  return kind == InstructionKind::receive_activation || kind == InstructionKind::receive_gradient;
}
bool is_send(InstructionKind kind) {
  return kind == InstructionKind::send_activation || kind == InstructionKind::send_gradient;
}

class Translator {
 public:
  Translator(const Graph& graph, const Program& program, const SimCosts& costs)
      : graph_(graph), program_(program), costs_(costs), places_(program.transfers.size()) {}

  Job translate() {
    job_.receive_window = program_.receive_window;
    job_.ports = costs_.ports;
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) job_.add_rank(static_cast<std::int32_t>(r));
    connect();
    group();
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) steps(static_cast<int>(r));
    return std::move(job_);
  }

 private:
  struct Place {  // of a message
    std::int16_t sender_slot = -1, receiver_slot = -1;
    std::int32_t index = 0;
    bool sent = false;
  };
  struct Membership {  // of one rank in one group
    std::int16_t slot = 0;
    std::int32_t started = 0;
  };

  void connect() {
    std::map<std::tuple<int, int, int>, std::pair<Place, int>> edges;  // and how many messages so far
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
      for (const Instruction& instruction : program_.ranks[r].instructions) {
        if (is_send(instruction.kind)) places_[at(instruction.transfer)].sent = true;
        if (!is_receive(instruction.kind)) continue;
        const Transfer& transfer = program_.transfers[at(instruction.transfer)];
        const auto [found, is_new] = edges.try_emplace({transfer.sender, transfer.receiver, transfer.edge});
        auto& [place, count] = found->second;
        if (is_new) {
          place.sender_slot = static_cast<std::int16_t>(job_.ranks[at(transfer.sender)].edges.size());
          place.receiver_slot = static_cast<std::int16_t>(job_.ranks[at(transfer.receiver)].edges.size());
          const Seconds latency = costs_.transfer(0_B, transfer.sender, transfer.receiver);
          const std::int32_t e = job_.connect(transfer.sender, transfer.receiver, latency.value(), 0);
          if (costs_.message_ports) job_.edges[at(e)].ports = costs_.message_ports(transfer.sender, transfer.receiver);
        }
        Place& its = places_[at(instruction.transfer)];
        its.sender_slot = place.sender_slot;
        its.receiver_slot = place.receiver_slot;
        its.index = count++;
      }
    }
  }

  void add_group(const std::vector<int>& owners) {
    if (owners.size() < 2 || !groups_.try_emplace(owners).second) return;
    std::map<int, Membership>& members = groups_[owners];
    for (const int owner : owners) {
      members[owner].slot = static_cast<std::int16_t>(job_.ranks[at(owner)].groups.size());
    }
    const std::int32_t g = job_.add_group({owners.begin(), owners.end()});
    if (costs_.collective_ports) job_.groups[at(g)].ports = costs_.collective_ports(owners);
  }

  void group() {
    for (const Bucket& bucket : program_.buckets) add_group(bucket.owners);
    all_.resize(program_.ranks.size());
    std::iota(all_.begin(), all_.end(), 0);
    norm_slots_.resize(all_.size());
    if (all_.size() < 2) return;
    // A group of its own: members number started collectives by group, and the norm is none.
    for (std::size_t r = 0; r < all_.size(); ++r) {
      norm_slots_[r] = static_cast<std::int16_t>(job_.ranks[r].groups.size());
    }
    const std::int32_t g = job_.add_group({all_.begin(), all_.end()});
    if (costs_.collective_ports) job_.groups[at(g)].ports = costs_.collective_ports(all_);
  }

  Bytes bytes_of(const Bucket& bucket) const {
    std::int64_t elements = 0;
    for (const TensorId tensor : bucket.tensors) elements += element_count(graph_.tensor(tensor).shape.dims);
    return Bytes(elements * costs_.bytes_per_element);
  }

  void steps(int rank) {
    std::vector<Step> list;
    std::map<std::int32_t, std::int32_t> started;  // bucket: number in its group
    const std::vector<Instruction>& instructions = program_.ranks[at(rank)].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& instruction = instructions[i];
      const auto label = static_cast<std::int32_t>(i);
      if (is_send(instruction.kind)) {
        list.push_back(send(instruction, label));
      } else if (is_receive(instruction.kind)) {
        const Place& place = places_[at(instruction.transfer)];
        if (!place.sent) {
          throw Error(ExitCode::internal, fmt::format("simulation: rank {} waits for ever at instruction {} ({}), a "
                                                      "message that nobody sends; the program does not verify",
                                                      rank, i, name(instruction.kind)));
        }
        list.push_back({.kind = StepKind::receive, .slot = place.receiver_slot, .index = place.index, .label = label});
      } else if (instruction.kind == InstructionKind::reduce_gradients) {
        const Bucket& bucket = program_.buckets[at(instruction.bucket)];
        Membership& member = groups_.at(bucket.owners).at(rank);
        started[instruction.bucket] = member.started;
        list.push_back({.kind = StepKind::start_collective,
                        .traffic = Traffic::gradients,
                        .slot = member.slot,
                        .index = member.started++,
                        .seconds = costs_.all_reduce(bytes_of(bucket), bucket.owners).value(),
                        .label = label});
      } else if (instruction.kind == InstructionKind::reduce_norm) {
        norm(rank, label, list);
      } else if (instruction.kind == InstructionKind::update_weights) {
        const Bucket& bucket = program_.buckets[at(instruction.bucket)];
        if (bucket.owners.size() > 1) {
          list.push_back({.kind = StepKind::wait_collective,
                          .traffic = Traffic::gradients,
                          .slot = groups_.at(bucket.owners).at(rank).slot,
                          .index = started.at(instruction.bucket),
                          .label = label});
        }
        list.push_back({.seconds = costs_.update(bytes_of(bucket), rank).value(), .label = label});
      } else {
        list.push_back({.seconds = compute(instruction, rank), .label = label});
      }
    }
    job_.add_program(std::move(list));
  }

  Step send(const Instruction& instruction, std::int32_t label) const {
    const Transfer& transfer = program_.transfers[at(instruction.transfer)];
    const Place& place = places_[at(instruction.transfer)];
    const std::int64_t elements = graph_.tensor(transfer.tensor).shape.elements_per_sample() * transfer.rows.size();
    const Bytes bytes(elements * costs_.bytes_per_element);
    const Seconds alone = costs_.transfer(bytes, transfer.sender, transfer.receiver);
    const Seconds latency = costs_.transfer(0_B, transfer.sender, transfer.receiver);
    return {.kind = StepKind::send,
            .slot = place.sender_slot,
            .index = place.index,
            .seconds = (alone - latency).value(),
            .bytes = bytes.value(),
            .label = label};
  }

  void norm(int rank, std::int32_t label, std::vector<Step>& list) const {
    list.push_back({.kind = StepKind::wait_started, .traffic = Traffic::gradients, .label = label});
    if (all_.size() < 2) return;
    list.push_back({.kind = StepKind::collective,
                    .traffic = Traffic::gradients,
                    .slot = norm_slots_[at(rank)],
                    .seconds = costs_.all_reduce(8_B, all_).value(),
                    .label = label});
  }

  double compute(const Instruction& instruction, int rank) const {
    const ProgramStage& stage = program_.stages[at(instruction.stage)];
    const auto replica = std::find(stage.ranks.begin(), stage.ranks.end(), rank) - stage.ranks.begin();
    const RowInterval rows = stage.rows[at(instruction.micro_batch)][at(replica)];
    if (rows.empty()) return 0;
    return costs_.compute(instruction.kind, instruction.stage, rank, rows.size()).value();
  }

  const Graph& graph_;
  const Program& program_;
  const SimCosts& costs_;
  Job job_;
  std::vector<Place> places_;
  std::map<std::vector<int>, std::map<int, Membership>> groups_;
  std::vector<int> all_;
  std::vector<std::int16_t> norm_slots_;
};

}  // namespace

Job job_of(const Graph& graph, const Program& program, const SimCosts& costs) {
  return Translator(graph, program, costs).translate();
}

}  // namespace millrace::sim
