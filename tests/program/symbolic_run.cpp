// A runtime in miniature: row values are hashes, gradients are sums of hashes.
#include "tests/program/symbolic_run.h"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "graph/stage_graph.h"

namespace millrace::test {
namespace {

using Rows = std::map<std::int64_t, std::uint64_t>;  // value by row of the global batch

std::uint64_t mix(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ULL + value + 0x632BE59BD9B4E019ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  return (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
}

struct Slot {
  std::int32_t micro_batch = -1;  // -1: free
  bool computed = false;
  std::map<TensorId, Rows> inputs;
  std::map<TensorId, Rows> outputs;
  std::map<TensorId, Rows> output_gradients;
};

struct RankState {
  std::size_t position = 0;
  std::int32_t stage = -1;
  std::size_t replica = 0;
  std::vector<Slot> slots;
  std::int32_t gradient_micro_batch = -1;
  std::map<TensorId, Rows> input_gradients;  // of the last backward
  std::uint64_t accumulated = 0;
  std::size_t norms = 0;
  std::vector<std::uint64_t> norm_values;
  std::map<std::int32_t, std::pair<std::vector<int>, std::size_t>> reductions;  // bucket: group and number in it
};

struct Broken : std::runtime_error {
  Broken() : std::runtime_error("broken") {}
};

class Run {
 public:
  Run(const Graph& graph, const Program& program) : program_(program), ranks_(program.ranks.size()) {
    for (std::size_t s = 0; s < program.stages.size(); ++s) {
      const ProgramStage& stage = program.stages[s];
      parts_.push_back(make_stage_graph(graph, stage.ops));
      for (std::size_t r = 0; r < stage.ranks.size(); ++r) {
        RankState& rank = ranks_[static_cast<std::size_t>(stage.ranks[r])];
        rank.stage = static_cast<std::int32_t>(s);
        rank.replica = r;
        rank.slots.resize(static_cast<std::size_t>(stage.slots));
      }
    }
  }

  Outcome run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const std::vector<Instruction>& list = program_.ranks[rank].instructions;
        while (ranks_[rank].position < list.size() && step(rank, list[ranks_[rank].position])) {
          ++ranks_[rank].position;
          moved = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].position != program_.ranks[rank].instructions.size()) throw Broken();
      for (const Slot& slot : ranks_[rank].slots) {
        if (slot.micro_batch >= 0) throw Broken();
      }
    }
    for (const auto& [channel, messages] : wire_) {
      if (!messages.empty()) throw Broken();
    }
    return outcome_;
  }

 private:
  Slot& slot_of(RankState& rank, std::int32_t micro_batch, bool may_start) {
    for (Slot& slot : rank.slots) {
      if (slot.micro_batch == micro_batch) return slot;
    }
    if (may_start) {
      for (Slot& slot : rank.slots) {
        if (slot.micro_batch >= 0) continue;
        slot = Slot{};
        slot.micro_batch = micro_batch;
        return slot;
      }
    }
    throw Broken();
  }

  RowInterval rows_of(const RankState& rank, std::int32_t micro_batch) const {
    return program_.stages[static_cast<std::size_t>(rank.stage)]
        .rows[static_cast<std::size_t>(micro_batch)][rank.replica];
  }

  static std::uint64_t row_hash(const std::map<TensorId, Rows>& tensors, std::int64_t row) {
    std::uint64_t hash = 1;
    for (const auto& [tensor, rows] : tensors) {
      const auto place = rows.find(row);
      hash = mix(hash, mix(static_cast<std::uint64_t>(tensor), place == rows.end() ? 0 : place->second));
    }
    return hash;
  }

  void forward(RankState& rank, std::int32_t micro_batch) {
    Slot& slot = slot_of(rank, micro_batch, true);
    if (slot.computed) throw Broken();
    slot.computed = true;
    const RowInterval rows = rows_of(rank, micro_batch);
    for (const TensorId output : parts_[static_cast<std::size_t>(rank.stage)].outputs) {
      for (std::int64_t row = rows.begin; row < rows.end; ++row) {
        const std::uint64_t value = mix(row_hash(slot.inputs, row), static_cast<std::uint64_t>(row));
        slot.outputs[output][row] = mix(value, static_cast<std::uint64_t>(output));
      }
    }
  }

  void backward(RankState& rank, std::int32_t micro_batch) {
    Slot& slot = slot_of(rank, micro_batch, false);
    if (!slot.computed) throw Broken();
    const RowInterval rows = rows_of(rank, micro_batch);
    rank.input_gradients.clear();
    rank.gradient_micro_batch = micro_batch;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const std::uint64_t value = mix(row_hash(slot.inputs, row), row_hash(slot.output_gradients, row));
      rank.accumulated += mix(value, static_cast<std::uint64_t>(row));
      for (const TensorId input : parts_[static_cast<std::size_t>(rank.stage)].gradient_inputs) {
        rank.input_gradients[input][row] = mix(value, static_cast<std::uint64_t>(input));
      }
    }
    slot.micro_batch = -1;
  }

  void send(RankState& rank, const Instruction& at) {
    const Transfer& t = program_.transfers[static_cast<std::size_t>(at.transfer)];
    std::vector<std::uint64_t> message;
    const bool activation = at.kind == InstructionKind::send_activation;
    if (!activation && rank.gradient_micro_batch != t.micro_batch) throw Broken();
    std::map<TensorId, Rows>& source = activation ? slot_of(rank, t.micro_batch, false).outputs : rank.input_gradients;
    for (std::int64_t row = t.rows.begin; row < t.rows.end; ++row) message.push_back(source[t.tensor][row]);
    wire_[{t.sender, t.receiver, t.tag}].push_back(message);
  }

  bool receive(RankState& rank, const Instruction& at) {
    const Transfer& t = program_.transfers[static_cast<std::size_t>(at.transfer)];
    auto& messages = wire_[{t.sender, t.receiver, t.tag}];
    if (messages.empty()) return false;
    const std::vector<std::uint64_t> message = messages.front();
    messages.pop_front();
    if (message.size() != static_cast<std::size_t>(t.rows.size())) throw Broken();
    const bool activation = at.kind == InstructionKind::receive_activation;
    Slot& slot = slot_of(rank, t.micro_batch, activation);
    if (activation == slot.computed) throw Broken();
    for (std::int64_t i = 0; i < t.rows.size(); ++i) {
      if (activation) {
        slot.inputs[t.tensor][t.rows.begin + i] = message[static_cast<std::size_t>(i)];
      } else {
        // Sums of floating-point numbers depend on their order.
        std::uint64_t& sum = slot.output_gradients[t.tensor][t.rows.begin + i];
        sum = mix(sum, message[static_cast<std::size_t>(i)]);
      }
    }
    return true;
  }

  struct Collective {
    std::int32_t bucket = -1;
    std::size_t joined = 0;
    std::uint64_t sum = 0;
  };

  void start_reduction(RankState& rank, std::int32_t bucket) {
    const std::vector<int>& group = program_.buckets[static_cast<std::size_t>(bucket)].owners;
    const std::size_t number = started_[{&rank - ranks_.data(), group}]++;
    std::vector<Collective>& line = collectives_[group];
    if (line.size() <= number) line.resize(number + 1);
    if (line[number].bucket >= 0 && line[number].bucket != bucket) throw Broken();
    line[number].bucket = bucket;
    ++line[number].joined;
    line[number].sum += rank.accumulated;
    if (!rank.reductions.try_emplace(bucket, group, number).second) throw Broken();
  }

  // The reduced gradient of a bucket; nothing while it is not complete.
  std::optional<std::uint64_t> reduced(const RankState& rank, std::int32_t bucket) {
    if (program_.buckets[static_cast<std::size_t>(bucket)].owners.size() == 1) return rank.accumulated;
    const auto place = rank.reductions.find(bucket);
    if (place == rank.reductions.end()) throw Broken();
    const auto& [group, number] = place->second;
    const Collective& collective = collectives_[group][number];
    if (collective.joined < group.size()) return std::nullopt;
    return collective.sum;
  }

  bool norm(std::size_t number, RankState& rank) {
    if (rank.norm_values.size() == rank.norms) {
      std::uint64_t own = 0;
      for (std::size_t b = 0; b < program_.buckets.size(); ++b) {
        const std::vector<int>& owners = program_.buckets[b].owners;
        if (!std::binary_search(owners.begin(), owners.end(), static_cast<int>(number))) continue;
        const std::optional<std::uint64_t> value = reduced(rank, static_cast<std::int32_t>(b));
        if (!value) return false;
        own += mix(b, *value);
      }
      rank.norm_values.push_back(own);
    }
    for (const RankState& other : ranks_) {
      if (other.norm_values.size() <= rank.norms) return false;
    }
    ++rank.norms;
    return true;
  }

  bool update(std::size_t number, RankState& rank, std::int32_t bucket) {
    if (rank.norms == 0) throw Broken();
    const std::optional<std::uint64_t> value = reduced(rank, bucket);
    if (!value) return false;
    std::uint64_t whole = *value;
    for (const RankState& other : ranks_) whole = mix(whole, other.norm_values[rank.norms - 1]);
    std::uint64_t& updated = outcome_[{static_cast<int>(number), bucket}];
    updated = mix(updated, whole);
    return true;
  }

  bool step(std::size_t number, const Instruction& at) {
    RankState& rank = ranks_[number];
    switch (at.kind) {
      case InstructionKind::forward:
        forward(rank, at.micro_batch);
        return true;
      case InstructionKind::backward:
        backward(rank, at.micro_batch);
        return true;
      case InstructionKind::send_activation:
      case InstructionKind::send_gradient:
        send(rank, at);
        return true;
      case InstructionKind::receive_activation:
      case InstructionKind::receive_gradient:
        return receive(rank, at);
      case InstructionKind::reduce_gradients:
        start_reduction(rank, at.bucket);
        return true;
      case InstructionKind::reduce_norm:
        return norm(number, rank);
      case InstructionKind::update_weights:
        return update(number, rank, at.bucket);
      default:
        throw Broken();
    }
  }

  const Program& program_;
  std::vector<StageGraph> parts_;
  std::vector<RankState> ranks_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::deque<std::vector<std::uint64_t>>> wire_;
  std::map<std::pair<std::ptrdiff_t, std::vector<int>>, std::size_t> started_;
  std::map<std::vector<int>, std::vector<Collective>> collectives_;
  Outcome outcome_;
};

}  // namespace

std::optional<Outcome> symbolic_run(const Graph& graph, const Program& program) {
  try {
    return Run(graph, program).run();
  } catch (const Broken&) {
    return std::nullopt;
  }
}

}  // namespace millrace::test
