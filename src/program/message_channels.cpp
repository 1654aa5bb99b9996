// Executes all ranks without time; where all wait and one of them for a buffer, it gets one more.
#include "program/message_channels.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace millrace {
namespace {

constexpr std::int32_t kNone = -1;

// What a rank waits for at an instruction, less what no buffer can change: a late sum never waits for a buffer.
class Execution {
 public:
  Execution(const Program& program, std::vector<MessageChannel>& channels)
      : program_(program),
        channels_(channels),
        iterations_(program.overlap + 3),
        channel_of_(program.transfers.size(), kNone),
        ranks_(program.ranks.size()),
        sent_(program.transfers.size() * static_cast<std::size_t>(iterations_), false),
        received_(sent_.size(), false),
        order_(channels.size()),
        reductions_(program.ranks.size(), std::vector<int>(program.buckets.size(), 0)) {
    for (std::size_t c = 0; c < channels.size(); ++c) {
      for (const std::int32_t transfer : channels[c].transfers) channel_of_[index(transfer)] = narrow(c);
    }
  }

  void run() {
    while (true) {
      while (advance()) {
      }
      MessageChannel* least = nullptr;
      for (const Rank& rank : ranks_) {
        if (rank.full == kNone) continue;
        MessageChannel& full = channels_[index(rank.full)];
        if (least == nullptr || full.send_buffers < least->send_buffers) least = &full;
      }
      if (least == nullptr) return;  // all have ended, or wait for what never comes: the verifier tells of that
      ++least->send_buffers;
    }
  }

 private:
  struct Rank {
    int round = 0;
    std::size_t position = 0;
    int norms = 0;                                                      // that it has come to
    bool at_meeting = false;                                            // come to, not yet left
    std::int32_t full = kNone;                                          // the channel whose buffers it waits for
    std::map<std::pair<std::int32_t, std::size_t>, int> collectives{};  // by stage and replica: that it has come to
  };

  static std::size_t index(std::int32_t value) { return static_cast<std::size_t>(value); }
  static std::int32_t narrow(std::size_t value) { return static_cast<std::int32_t>(value); }

  bool advance() {
    bool moved = false;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      while (step(r)) moved = true;
    }
    return moved;
  }

  // False where the rank waits, or has ended.
  bool step(std::size_t r) {
    Rank& rank = ranks_[r];
    const std::vector<Instruction>& list = program_.ranks[r].instructions;
    if (rank.round == iterations_ + program_.overlap) return false;
    if (rank.position == list.size()) return end_round(rank);
    const Instruction& now = list[rank.position];
    const int iteration = rank.round - now.lag;
    const bool executed = iteration >= 0 && iteration < iterations_;
    rank.full = kNone;
    if (executed && !passes(r, now, iteration)) return false;
    ++rank.position;
    return true;
  }

  // Without a norm, the sums of a round are waited for at the end of the next.
  bool end_round(Rank& rank) {
    if (program_.training && !program_.norm) {
      for (const Rank& other : ranks_) {
        if (other.round + 1 < rank.round) return false;
      }
    }
    ++rank.round;
    rank.position = 0;
    return true;
  }

  bool passes(std::size_t r, const Instruction& now, int iteration) {
    switch (now.kind) {
      case InstructionKind::send_activation:
      case InstructionKind::send_gradient:
        return send(ranks_[r], now.transfer, iteration);
      case InstructionKind::receive_activation:
      case InstructionKind::receive_gradient:
        if (!sent_[message(now.transfer, iteration)]) return false;
        received_[message(now.transfer, iteration)] = true;
        return true;
      case InstructionKind::reduce_gradients:
        ++reductions_[r][index(now.bucket)];
        return true;
      case InstructionKind::update_weights:
        return reduced(r, index(now.bucket));
      case InstructionKind::reduce_norm:
        return norm(r);
      case InstructionKind::all_reduce:
      case InstructionKind::all_gather:
      case InstructionKind::reduce_scatter:
      case InstructionKind::all_to_all:
        return collective(r, now.stage);
      default:
        return true;
    }
  }

  std::size_t message(std::int32_t transfer, int iteration) const {
    return index(transfer) * static_cast<std::size_t>(iterations_) + static_cast<std::size_t>(iteration);
  }

  bool send(Rank& rank, std::int32_t transfer, int iteration) {
    const std::int32_t channel = channel_of_[index(transfer)];
    std::vector<std::size_t>& before = order_[index(channel)];
    const auto buffers = static_cast<std::size_t>(channels_[index(channel)].send_buffers);
    if (before.size() >= buffers && !received_[before[before.size() - buffers]]) {
      rank.full = channel;
      return false;
    }
    before.push_back(message(transfer, iteration));
    sent_[before.back()] = true;
    return true;
  }

  bool reduced(std::size_t r, std::size_t bucket) const {
    const std::vector<int>& owners = program_.buckets[bucket].owners;
    return std::all_of(owners.begin(), owners.end(), [&](int owner) {
      return reductions_[static_cast<std::size_t>(owner)][bucket] >= reductions_[r][bucket];
    });
  }

  bool norm(std::size_t r) {
    Rank& rank = ranks_[r];
    for (std::size_t bucket = 0; bucket < program_.buckets.size(); ++bucket) {
      if (!reduced(r, bucket)) return false;
    }
    if (!rank.at_meeting) ++rank.norms;
    rank.at_meeting = true;
    for (const Rank& other : ranks_) {
      if (other.norms < rank.norms) return false;
    }
    rank.at_meeting = false;
    return true;
  }

  bool collective(std::size_t r, std::int32_t of) {
    const ProgramStage& stage = program_.stages[index(of)];
    const auto found = std::find(stage.ranks.begin(), stage.ranks.end(), static_cast<int>(r));
    const std::size_t replica = stage.replica_of(static_cast<std::size_t>(found - stage.ranks.begin()));
    const auto shards = static_cast<std::size_t>(stage.tensor_parallel);
    int& own = ranks_[r].collectives[{of, replica}];
    if (!ranks_[r].at_meeting) ++own;
    ranks_[r].at_meeting = true;
    for (std::size_t shard = replica * shards; shard < (replica + 1) * shards; ++shard) {
      if (ranks_[static_cast<std::size_t>(stage.ranks[shard])].collectives[{of, replica}] < own) return false;
    }
    ranks_[r].at_meeting = false;
    return true;
  }

  const Program& program_;
  std::vector<MessageChannel>& channels_;
  int iterations_;
  std::vector<std::int32_t> channel_of_;  // by transfer
  std::vector<Rank> ranks_;
  std::vector<bool> sent_;                       // [transfer][iteration]
  std::vector<bool> received_;                   // the same
  std::vector<std::vector<std::size_t>> order_;  // by channel: messages as they were sent
  std::vector<std::vector<int>> reductions_;     // [rank][bucket] started
};

}  // namespace

std::vector<MessageChannel> message_channels(const Program& program) {
  std::map<std::tuple<Direction, TensorId, int, int, int, int>, MessageChannel> known;
  for (std::size_t i = 0; i < program.transfers.size(); ++i) {
    const Transfer& t = program.transfers[i];
    MessageChannel& channel = known[{t.direction, t.tensor, t.from_stage, t.to_stage, t.sender, t.receiver}];
    if (channel.transfers.empty()) {
      channel = {t.direction, t.tensor, t.from_stage, t.to_stage, t.sender, t.receiver};
    }
    channel.transfers.push_back(static_cast<std::int32_t>(i));
    channel.rows = std::max(channel.rows, t.rows.size());
  }
  std::vector<MessageChannel> channels;
  for (auto& [key, channel] : known) {
    const auto messages = static_cast<int>(channel.transfers.size());
    channel.receive_buffers = std::min(messages, program.receive_window + 1);
    channel.send_buffers = channel.receive_buffers;
    channels.push_back(std::move(channel));
  }
  Execution(program, channels).run();
  return channels;
}

}  // namespace millrace
