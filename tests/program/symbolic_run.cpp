// A runtime in miniature: row values are hashes, gradients are sums of hashes, weights are a hash of their updates.
#include "tests/program/symbolic_run.h"

#include <algorithm>
#include <deque>
#include <set>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "graph/stage_graph.h"

namespace millrace::test {
namespace {

using Rows = std::map<std::int64_t, std::uint64_t>;  // value by row of the global batch
using Key = std::pair<int, std::int32_t>;            // iteration, micro-batch

std::uint64_t mix(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ULL + value + 0x632BE59BD9B4E019ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  return (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
}

struct Broken : std::runtime_error {
  Broken() : std::runtime_error("broken") {}
};

struct Slot {
  bool computed = false;
  bool recomputed = false;
  bool input_done = false;
  int segment = 0;  // of its weight gradients: the next
  std::uint64_t weights = 0;
  std::uint64_t backward = 0;  // what the weight gradient will be made of
  std::map<TensorId, Rows> inputs;
  std::map<TensorId, Rows> outputs;
  std::map<TensorId, Rows> output_gradients;
};

// One stage on one rank.
struct Held {
  std::size_t replica = 0;
  std::map<Key, Slot> slots;
  std::deque<Key> finished;  // in evaluation: outputs of the last forwards
  Key gradient_of{-1, -1};
  std::map<TensorId, Rows> input_gradients;        // of the last backward
  std::map<std::int32_t, std::uint64_t> gathered;  // gradient by bucket
  std::uint64_t weights = 0;
  std::map<std::int32_t, std::uint64_t> updates;  // what the weights are made of, by bucket
  std::set<std::int32_t> in_parts;  // buckets of which it has updated its part and not gathered the others
  std::map<Key, std::uint64_t> stashes;
  std::optional<std::uint64_t> loaded;
};

struct RankState {
  std::size_t next = 0;
  std::map<std::int32_t, Held> stages;
  std::size_t norms = 0;
  std::vector<std::uint64_t> norm_values;
  std::map<std::int32_t, std::size_t> reductions;  // number of the bucket's newest in its group's line
  std::size_t collectives = 0;
  bool at_collective = false;
};

struct Reduction {
  std::int32_t bucket = -1;
  std::size_t joined = 0;
  std::uint64_t sum = 0;
  bool gathers = false;  // weights, not gradients
};

class Run {
 public:
  Run(const Graph& graph, const Program& program, int iterations)
      : graph_(graph), program_(program), ranks_(program.ranks.size()) {
    for (std::size_t s = 0; s < program.stages.size(); ++s) {
      const ProgramStage& stage = program.stages[s];
      parts_.push_back(make_stage_graph(graph, stage.ops));
      for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
        Held& held = ranks_[static_cast<std::size_t>(stage.ranks[i])].stages[static_cast<std::int32_t>(s)];
        held.replica = i / static_cast<std::size_t>(stage.tensor_parallel);
      }
    }
    // Written out here again, not taken from unroll().
    for (const RankProgram& rank : program.ranks) {
      auto& list = lists_.emplace_back();
      for (int round = 0; round < iterations + program.overlap; ++round) {
        for (const Instruction& at : rank.instructions) {
          const int iteration = round - at.lag;
          if (iteration >= 0 && iteration < iterations) list.emplace_back(at, iteration);
        }
      }
    }
  }

  Outcome run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        while (ranks_[rank].next < lists_[rank].size() && step(rank)) {
          ++ranks_[rank].next;
          moved = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].next != lists_[rank].size()) throw Broken();
      for (const auto& [number, held] : ranks_[rank].stages) {
        if ((program_.training && !held.slots.empty()) || !held.stashes.empty() || held.loaded) throw Broken();
        if (!held.in_parts.empty()) throw Broken();
        for (const auto& [bucket, gradient] : held.gathered) {
          if (program_.training && !program_.norm && gradient != 0) throw Broken();
        }
      }
    }
    for (const auto& [channel, messages] : wire_) {
      if (!messages.empty()) throw Broken();
    }
    return outcome_;
  }

 private:
  const ProgramStage& stage(std::int32_t s) const { return program_.stages[static_cast<std::size_t>(s)]; }
  const StageGraph& part(std::int32_t s) const { return parts_[static_cast<std::size_t>(s)]; }
  RowInterval rows_of(const Held& held, std::int32_t s, std::int32_t k) const {
    return stage(s).rows[static_cast<std::size_t>(k)][held.replica];
  }

  static std::uint64_t row_hash(const std::map<TensorId, Rows>& tensors, std::int64_t row) {
    std::uint64_t hash = 1;
    for (const auto& [tensor, rows] : tensors) {
      const auto place = rows.find(row);
      hash = mix(hash, mix(static_cast<std::uint64_t>(tensor), place == rows.end() ? 0 : place->second));
    }
    return hash;
  }

  Slot& start_slot(Held& held, std::int32_t s, Key key) {
    const auto place = held.slots.find(key);
    if (place != held.slots.end()) return place->second;
    if (held.slots.size() >= static_cast<std::size_t>(stage(s).slots)) {
      // Evaluation keeps a slot until the next micro-batch wants it.
      if (program_.training || held.finished.empty()) throw Broken();
      held.slots.erase(held.finished.front());
      held.finished.pop_front();
    }
    return held.slots[key];
  }

  static Slot& slot_of(Held& held, Key key) {
    const auto place = held.slots.find(key);
    if (place == held.slots.end()) throw Broken();
    return place->second;
  }

  std::uint64_t take_weights(Held& held) {
    if (!held.in_parts.empty()) throw Broken();
    const std::uint64_t weights = held.loaded.value_or(held.weights);
    held.loaded.reset();
    return weights;
  }

  // What the stage reads: messages lie in its slot, the rest with the stages of this rank.
  std::map<TensorId, Rows> inputs_of(RankState& rank, std::int32_t s, Key key, const Slot& slot) {
    std::map<TensorId, Rows> inputs = slot.inputs;
    for (const TensorId input : part(s).inputs) {
      if (graph_.tensor(input).role != Role::activation || inputs.contains(input)) continue;
      for (auto& [other, held] : rank.stages) {
        if (other == s || stage(other).ref.pipeline != stage(s).ref.pipeline) continue;
        const auto place = held.slots.find(key);
        if (place == held.slots.end()) continue;
        for (const auto* source : {&place->second.outputs, &place->second.inputs}) {
          const auto tensor = source->find(input);
          if (tensor != source->end() && (source == &place->second.inputs || place->second.computed)) {
            inputs[input] = tensor->second;
          }
        }
      }
    }
    return inputs;
  }

  void forward(RankState& rank, std::int32_t s, Key key) {
    Held& held = rank.stages.at(s);
    Slot& slot = start_slot(held, s, key);
    if (slot.computed) throw Broken();
    slot.computed = true;
    slot.weights = take_weights(held);
    slot.inputs = inputs_of(rank, s, key, slot);
    const RowInterval rows = rows_of(held, s, key.second);
    for (const TensorId input : part(s).inputs) {
      if (graph_.tensor(input).role != Role::activation) continue;
      for (std::int64_t row = rows.begin; row < rows.end; ++row) {
        if (!slot.inputs[input].contains(row)) throw Broken();
      }
    }
    for (const TensorId output : part(s).outputs) {
      for (std::int64_t row = rows.begin; row < rows.end; ++row) {
        const std::uint64_t value = mix(mix(row_hash(slot.inputs, row), static_cast<std::uint64_t>(row)), slot.weights);
        slot.outputs[output][row] = mix(value, static_cast<std::uint64_t>(output));
      }
    }
    if (!program_.training) held.finished.push_back(key);
  }

  // Gradients of outputs that stages of this rank read, before those of later messages are there: the latest first.
  std::uint64_t local_gradients(RankState& rank, std::int32_t s, Key key, std::int64_t row) {
    std::uint64_t hash = 0;
    for (const TensorId output : part(s).outputs) {
      for (auto other = rank.stages.rbegin(); other != rank.stages.rend(); ++other) {
        const std::int32_t consumer = other->first;
        if (consumer == s || stage(consumer).ref.pipeline != stage(s).ref.pipeline) continue;
        const auto& wanted = part(consumer).gradient_inputs;
        if (std::find(wanted.begin(), wanted.end(), output) == wanted.end()) continue;
        const auto place = local_.find({&rank - ranks_.data(), consumer, key, output});
        if (place == local_.end()) throw Broken();
        hash = mix(hash, place->second.at(row));
      }
    }
    return hash;
  }

  void backward_input(RankState& rank, std::int32_t s, Key key) {
    Held& held = rank.stages.at(s);
    Slot& slot = slot_of(held, key);
    const bool drops = !stage(s).recompute.empty();
    if (!slot.computed || slot.input_done || slot.recomputed != drops) throw Broken();
    if (take_weights(held) != slot.weights) throw Broken();
    slot.input_done = true;
    held.input_gradients.clear();
    held.gradient_of = key;
    const RowInterval rows = rows_of(held, s, key.second);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      std::uint64_t value = mix(row_hash(slot.inputs, row), row_hash(slot.output_gradients, row));
      value = mix(mix(value, local_gradients(rank, s, key, row)), slot.weights);
      slot.backward += mix(value, static_cast<std::uint64_t>(row));
      for (const TensorId input : part(s).gradient_inputs) {
        held.input_gradients[input][row] = mix(value, static_cast<std::uint64_t>(input));
      }
    }
    for (const TensorId input : part(s).gradient_inputs) {
      local_[{&rank - ranks_.data(), s, key, input}] = held.input_gradients[input];
    }
  }

  // A part of the layers completes the buckets whose first operator it holds; the last part ends the micro-batch.
  void backward_weight(RankState& rank, std::int32_t s, Key key, int segment = -1) {
    Held& held = rank.stages.at(s);
    Slot& slot = slot_of(held, key);
    const ProgramStage& stage = program_.stages[static_cast<std::size_t>(s)];
    if (!slot.input_done || (segment >= 0 ? segment != slot.segment : slot.segment != 0)) throw Broken();
    if (segment >= 0) ++slot.segment;
    const auto parts = static_cast<int>(stage.weight_cuts.size());
    const OpId from = segment >= 0 && segment < parts ? stage.weight_cuts[static_cast<std::size_t>(segment)] : 0;
    const OpId to =
        segment > 0 ? stage.weight_cuts[static_cast<std::size_t>(segment) - 1] : static_cast<OpId>(graph_.size());
    for (std::size_t b = 0; b < program_.buckets.size(); ++b) {
      const std::vector<std::int32_t>& of = program_.buckets[b].stages;
      if (std::find(of.begin(), of.end(), s) == of.end()) continue;
      const OpId first = first_user(stage, program_.buckets[b]);
      if (first >= from && first < to) held.gathered[static_cast<std::int32_t>(b)] += slot.backward + 1;
    }
    if (segment < 0 || segment == parts) held.slots.erase(key);
  }

  OpId first_user(const ProgramStage& stage, const Bucket& bucket) const {
    for (const OpId op : stage.ops) {
      for (const auto* list : {&graph_.op(op).parameters, &graph_.op(op).buffers}) {
        for (const TensorId tensor : *list) {
          if (std::count(bucket.tensors.begin(), bucket.tensors.end(), tensor) > 0) return op;
        }
      }
    }
    throw Broken();
  }

  void send(RankState& rank, const Instruction& at, Key key) {
    const Transfer& t = program_.transfers[static_cast<std::size_t>(at.transfer)];
    Held& held = rank.stages.at(at.stage);
    std::vector<std::uint64_t> message;
    const bool activation = at.kind == InstructionKind::send_activation;
    if (!activation && held.gradient_of != key) throw Broken();
    if (activation && !slot_of(held, key).computed) throw Broken();
    std::map<TensorId, Rows>& source = activation ? slot_of(held, key).outputs : held.input_gradients;
    for (std::int64_t row = t.rows.begin; row < t.rows.end; ++row) message.push_back(source[t.tensor][row]);
    wire_[{t.sender, t.receiver, t.tag}].push_back(message);
  }

  bool receive(RankState& rank, const Instruction& at, Key key) {
    const Transfer& t = program_.transfers[static_cast<std::size_t>(at.transfer)];
    auto& messages = wire_[{t.sender, t.receiver, t.tag}];
    if (messages.empty()) return false;
    const std::vector<std::uint64_t> message = messages.front();
    messages.pop_front();
    if (message.size() != static_cast<std::size_t>(t.rows.size())) throw Broken();
    const bool activation = at.kind == InstructionKind::receive_activation;
    Held& held = rank.stages.at(at.stage);
    Slot& slot = activation ? start_slot(held, at.stage, key) : slot_of(held, key);
    if (activation == slot.computed || slot.input_done) throw Broken();
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

  // The rank's own gradient of a bucket: of all of its copies.
  std::uint64_t own_gradient(RankState& rank, std::int32_t bucket) {
    std::uint64_t sum = 0;
    for (const std::int32_t s : program_.buckets[static_cast<std::size_t>(bucket)].stages) {
      const auto place = rank.stages.find(s);
      if (place != rank.stages.end()) sum += place->second.gathered[bucket];
    }
    return sum;
  }

  // The next operation of a bucket's group, which all owners begin in one order. Returns its number.
  std::size_t start_in_line(RankState& rank, std::int32_t bucket, bool gathers) {
    const std::vector<int>& group = program_.buckets[static_cast<std::size_t>(bucket)].owners;
    const std::size_t number = started_[{&rank - ranks_.data(), group}]++;
    std::vector<Reduction>& line = reductions_[group];
    if (line.size() <= number) line.resize(number + 1);
    Reduction& at = line[number];
    if (at.bucket >= 0 && (at.bucket != bucket || at.gathers != gathers)) throw Broken();
    at.bucket = bucket;
    at.gathers = gathers;
    ++at.joined;
    return number;
  }

  void start_reduction(RankState& rank, std::int32_t bucket) {
    const std::size_t number = start_in_line(rank, bucket, false);
    reductions_[program_.buckets[static_cast<std::size_t>(bucket)].owners][number].sum += own_gradient(rank, bucket);
    if (!rank.reductions.try_emplace(bucket, number).second) throw Broken();
  }

  // The reduced gradient of a bucket; nothing while it is not complete.
  std::optional<std::uint64_t> reduced(RankState& rank, std::int32_t bucket) {
    const std::vector<int>& group = program_.buckets[static_cast<std::size_t>(bucket)].owners;
    if (group.size() == 1) return own_gradient(rank, bucket);
    const auto place = rank.reductions.find(bucket);
    if (place == rank.reductions.end()) throw Broken();
    const Reduction& reduction = reductions_[group][place->second];
    if (reduction.joined < group.size()) return std::nullopt;
    return reduction.sum;
  }

  bool norm(std::size_t number) {
    RankState& rank = ranks_[number];
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

  bool update(std::size_t number, std::int32_t bucket) {
    RankState& rank = ranks_[number];
    if (program_.norm && rank.norms == 0) throw Broken();
    const std::optional<std::uint64_t> value = reduced(rank, bucket);
    if (!value) return false;
    std::uint64_t whole = *value;
    if (program_.norm) {
      for (const RankState& other : ranks_) whole = mix(whole, other.norm_values[rank.norms - 1]);
    }
    std::uint64_t& updated = outcome_[{static_cast<int>(number), bucket}];
    updated = mix(updated, whole);
    rank.reductions.erase(bucket);
    for (const std::int32_t s : program_.buckets[static_cast<std::size_t>(bucket)].stages) {
      const auto place = rank.stages.find(s);
      if (place == rank.stages.end()) continue;
      // Buckets have nothing in common: in which order they are updated is all the same.
      const auto [own, is_first] = place->second.updates.try_emplace(bucket, 0);
      if (!is_first) place->second.weights -= mix(static_cast<std::uint64_t>(bucket), own->second);
      own->second = mix(own->second, whole);
      place->second.weights += mix(static_cast<std::uint64_t>(bucket), own->second);
      place->second.gathered[bucket] = 0;
      if (program_.shard_optimizer && program_.buckets[static_cast<std::size_t>(bucket)].owners.size() > 1 &&
          !place->second.in_parts.insert(bucket).second) {
        throw Broken();
      }
    }
    return true;
  }

  void gather(RankState& rank, std::int32_t bucket) {
    start_in_line(rank, bucket, true);
    for (const std::int32_t s : program_.buckets[static_cast<std::size_t>(bucket)].stages) {
      const auto place = rank.stages.find(s);
      if (place != rank.stages.end() && place->second.in_parts.erase(bucket) == 0) throw Broken();
    }
  }

  // Ranks of a replica meet in the order in which each comes to its collectives.
  bool collective(RankState& rank, const Instruction& at, Key key) {
    const ProgramStage& of = stage(at.stage);
    const auto shards = static_cast<std::size_t>(of.tensor_parallel);
    const std::size_t replica = rank.stages.at(at.stage).replica;
    const std::tuple mine{at.collective, key, at.stage};
    const std::size_t number = rank.collectives;
    auto& line = meetings_[{at.stage, replica}];
    if (line.size() <= number) line.resize(number + 1);
    if (!rank.at_collective) {
      rank.at_collective = true;
      for (const auto& other : line[number]) {
        if (other != mine) throw Broken();
      }
      line[number].push_back(mine);
    }
    if (line[number].size() < shards) return false;
    rank.at_collective = false;
    ++rank.collectives;
    return true;
  }

  bool step(std::size_t number) {
    RankState& rank = ranks_[number];
    const auto& [at, iteration] = lists_[number][rank.next];
    const Key key{iteration, at.micro_batch};
    if (at.stage >= 0 && !rank.stages.contains(at.stage)) throw Broken();
    switch (at.kind) {
      case InstructionKind::forward:
        if (at.segment <= 0) forward(rank, at.stage, key);
        return true;
      case InstructionKind::backward:
        if (at.segment > 0) return true;
        backward_input(rank, at.stage, key);
        backward_weight(rank, at.stage, key);
        return true;
      case InstructionKind::backward_input:
        if (at.segment <= 0) backward_input(rank, at.stage, key);
        return true;
      case InstructionKind::backward_weight:
        backward_weight(rank, at.stage, key, at.segment);
        return true;
      case InstructionKind::recompute: {
        if (at.segment > 0) return true;
        Slot& slot = slot_of(rank.stages.at(at.stage), key);
        if (!slot.computed || slot.input_done || slot.recomputed) throw Broken();
        slot.recomputed = true;
        return true;
      }
      case InstructionKind::send_activation:
      case InstructionKind::send_gradient:
        send(rank, at, key);
        return true;
      case InstructionKind::receive_activation:
      case InstructionKind::receive_gradient:
        return receive(rank, at, key);
      case InstructionKind::reduce_gradients:
        start_reduction(rank, at.bucket);
        return true;
      case InstructionKind::reduce_norm:
        return norm(number);
      case InstructionKind::update_weights:
        return update(number, at.bucket);
      case InstructionKind::gather_weights:
        gather(rank, at.bucket);
        return true;
      case InstructionKind::stash_weights: {
        Held& held = rank.stages.at(at.stage);
        if (!held.stashes.try_emplace(key, held.weights).second) throw Broken();
        return true;
      }
      case InstructionKind::load_weights: {
        Held& held = rank.stages.at(at.stage);
        const auto place = held.stashes.find(key);
        if (held.loaded || (place == held.stashes.end() && iteration > 0)) throw Broken();
        held.loaded = place == held.stashes.end() ? 0 : place->second;
        return true;
      }
      case InstructionKind::drop_stash:
        if (rank.stages.at(at.stage).stashes.erase(key) == 0 && iteration > 0) throw Broken();
        return true;
      default:
        return collective(rank, at, key);
    }
  }

  const Graph& graph_;
  const Program& program_;
  std::vector<StageGraph> parts_;
  std::vector<RankState> ranks_;
  std::vector<std::vector<std::pair<Instruction, int>>> lists_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::deque<std::vector<std::uint64_t>>> wire_;
  std::map<std::tuple<std::ptrdiff_t, std::int32_t, Key, TensorId>, Rows> local_;  // gradients within a rank
  std::map<std::pair<std::ptrdiff_t, std::vector<int>>, std::size_t> started_;
  std::map<std::vector<int>, std::vector<Reduction>> reductions_;
  std::map<std::pair<std::int32_t, std::size_t>, std::vector<std::vector<std::tuple<std::int32_t, Key, std::int32_t>>>>
      meetings_;
  Outcome outcome_;
};

}  // namespace

std::optional<Outcome> symbolic_run(const Graph& graph, const Program& program) {
  try {
    return Run(graph, program, program.norm || !program.training ? 1 : program.overlap + 2).run();
  } catch (const Broken&) {
    return std::nullopt;
  }
}

}  // namespace millrace::test
