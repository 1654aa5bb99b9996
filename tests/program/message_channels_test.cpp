// Send buffers: as many as the receive window asks for, and more only where ranks would wait for each other.
#include "program/message_channels.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr int kMicroBatches = 8;

Transfer message(Direction direction, int from, int to, int micro_batch) {
  Transfer transfer;
  transfer.direction = direction;
  transfer.from_stage = transfer.sender = from;
  transfer.to_stage = transfer.receiver = to;
  transfer.micro_batch = micro_batch;
  transfer.rows = {2 * micro_batch, 2 * micro_batch + (micro_batch == 0 ? 2 : 1)};
  return transfer;
}

// Two ranks: activations of 8 micro-batches one way, gradients the other way, the first `ahead` activations before the
// first gradient is taken.
Program two_ranks(int ahead) {
  Program program;
  program.stages.resize(2);
  program.ranks.resize(2);
  for (int k = 0; k < kMicroBatches; ++k) program.transfers.push_back(message(Direction::activation, 0, 1, k));
  for (int k = 0; k < kMicroBatches; ++k) program.transfers.push_back(message(Direction::gradient, 1, 0, k));
  const auto add = [&](std::size_t rank, InstructionKind kind, int transfer) {
    Instruction at;
    at.kind = kind;
    at.transfer = transfer;
    program.ranks[rank].instructions.push_back(at);
  };
  for (int k = 0; k < kMicroBatches + ahead; ++k) {
    if (k < kMicroBatches) add(0, InstructionKind::send_activation, k);
    if (k >= ahead) add(0, InstructionKind::receive_gradient, kMicroBatches + k - ahead);
  }
  for (int k = 0; k < kMicroBatches; ++k) {
    add(1, InstructionKind::receive_activation, k);
    add(1, InstructionKind::send_gradient, kMicroBatches + k);
  }
  return program;
}

int send_buffers(const std::vector<MessageChannel>& channels, Direction direction) {
  for (const MessageChannel& channel : channels) {
    if (channel.direction == direction) return channel.send_buffers;
  }
  return 0;
}

TEST(MessageChannels, TheWindowIsEnoughWhereNobodyWaitsInACircle) {
  const std::vector<MessageChannel> channels = message_channels(two_ranks(2));
  ASSERT_EQ(channels.size(), 2U);
  for (const MessageChannel& channel : channels) {
    EXPECT_EQ(channel.send_buffers, 2);
    EXPECT_EQ(channel.receive_buffers, 2);
    EXPECT_EQ(channel.transfers.size(), std::size_t{kMicroBatches});
    EXPECT_EQ(channel.rows, 2) << "of the longest";
  }
}

// Rank 0 sends 8 activations before it takes a gradient. Rank 1 may be blocked with as many gradients as it has
// buffers; what it took by then and what waits for it are all the activations that can be sent.
TEST(MessageChannels, ARankThatIsFarAheadGetsTheBuffersThatLetItGoOn) {
  const std::vector<MessageChannel> channels = message_channels(two_ranks(kMicroBatches));
  const int activations = send_buffers(channels, Direction::activation);
  const int gradients = send_buffers(channels, Direction::gradient);
  EXPECT_GT(activations + gradients, 4);
  // Rank 1 has taken gradients + 1 activations when it is blocked; the others lie in buffers.
  EXPECT_GE(activations + gradients + 1, kMicroBatches);
  EXPECT_LE(activations, kMicroBatches);
  EXPECT_LE(gradients, kMicroBatches);
}

TEST(MessageChannels, NoMoreThanThereAreMessages) {
  Program program = two_ranks(2);
  program.receive_window = 20;
  for (const MessageChannel& channel : message_channels(program)) {
    EXPECT_EQ(channel.send_buffers, kMicroBatches);
    EXPECT_EQ(channel.receive_buffers, kMicroBatches);
  }
}

TEST(MessageChannels, AProgramThatHangsByItselfEnds) {
  Program program = two_ranks(2);
  program.ranks[1].instructions.erase(program.ranks[1].instructions.begin() + 1);  // a gradient that never comes
  EXPECT_EQ(message_channels(program).size(), 2U);
}

}  // namespace
}  // namespace millrace
