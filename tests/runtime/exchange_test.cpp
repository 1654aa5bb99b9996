// Receives are posted a window ahead, in order, into buffers that nobody reads; sends never wait for a buffer.
#include "runtime/exchange.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "tests/mpi/networks.h"
#include "tests/mpi/training_run.h"
#include "tests/runtime/programs.h"

namespace millrace::runtime {
namespace {

using testing::training_program;

// Notes what is started; operations are done when the test says so.
class NotingTransport final : public comm::Transport {
 public:
  struct Message {
    void* data = nullptr;
    std::size_t bytes = 0;
    int peer = -1;
    int tag = -1;
    bool done = false;
  };

  int rank() const override { return 1; }
  int size() const override { return 2; }
  std::int64_t largest_tag() const override { return 32767; }
  comm::Ticket send(std::span<const std::byte> data, int peer, int tag) override {
    messages.push_back({const_cast<std::byte*>(data.data()), data.size(), peer, tag});
    return static_cast<comm::Ticket>(messages.size() - 1);
  }
  comm::Ticket receive(std::span<std::byte> data, int peer, int tag) override {
    messages.push_back({data.data(), data.size(), peer, tag});
    return static_cast<comm::Ticket>(messages.size() - 1);
  }
  comm::GroupId group(std::span<const int>) override { return 0; }
  comm::Ticket all_reduce(comm::GroupId, void*, std::int64_t, comm::Element) override { return 0; }
  comm::Ticket reduce_scatter(comm::GroupId, void*, std::int64_t, comm::Element) override { return 0; }
  comm::Ticket all_gather(comm::GroupId, void*, std::int64_t, comm::Element) override { return 0; }
  bool test(comm::Ticket ticket) override { return messages[static_cast<std::size_t>(ticket)].done; }
  void wait(comm::Ticket ticket, comm::WaitObserver*) override {
    messages[static_cast<std::size_t>(ticket)].done = true;
  }
  std::int64_t bytes_sent() const override { return 0; }
  std::int64_t bytes_received() const override { return 0; }

  std::vector<Message> messages;
};

class Nobody final : public comm::WaitObserver {
  void waiting() override {}
  void finished() override {}
};

// The second of two stages: it receives activations and sends gradients, one of each for a micro-batch.
class SecondStage {
 public:
  explicit SecondStage(std::int64_t micro_batches, int window)
      : graph_(millrace::testing::small_network("mlp")),
        program_(training_program(graph_, millrace::testing::make_plan(graph_, {1, 2, micro_batches, "gpipe"}),
                                  2 * micro_batches)) {
    program_.receive_window = window;
    exchange.emplace(graph_, program_, 1, kernels::Precision::fp32, transport);
    for (const Instruction& instruction : program_.ranks[1].instructions) {
      if (instruction.kind == InstructionKind::receive_activation) receives.push_back(instruction.transfer);
      if (instruction.kind == InstructionKind::send_gradient) sends.push_back(instruction.transfer);
    }
  }
  int tag(std::int32_t transfer) const { return program_.transfers[static_cast<std::size_t>(transfer)].tag; }

 private:
  Graph graph_;
  Program program_;

 public:
  NotingTransport transport;
  std::optional<Exchange> exchange;
  std::vector<std::int32_t> receives, sends;  // transfers in program order
};

TEST(Exchange, PostsTheWindowAheadInOrderAndOneMoreForEachRelease) {
  Nobody nobody;
  for (const int window : {0, 1, 2}) {
    SecondStage stage(5, window);
    ASSERT_EQ(stage.receives.size(), 5U);
    for (int iteration = 0; iteration < 2; ++iteration) {
      stage.transport.messages.clear();
      stage.exchange->begin();
      std::size_t posted = static_cast<std::size_t>(window) + 1;  // the one waited for, and those ahead
      for (std::size_t k = 0; k < 5; ++k) {
        ASSERT_EQ(stage.transport.messages.size(), std::min<std::size_t>(posted, 5))
            << "window " << window << " receive " << k;
        EXPECT_EQ(stage.transport.messages[k].tag, stage.tag(stage.receives[k]));
        EXPECT_EQ(stage.exchange->receive(stage.receives[k], nobody), stage.transport.messages[k].data);
        stage.exchange->release(stage.receives[k]);
        ++posted;
      }
    }
  }
}

TEST(Exchange, NoReceiveIsPostedIntoABufferInUse) {
  Nobody nobody;
  SecondStage stage(7, 1);
  stage.exchange->begin();
  for (const std::int32_t transfer : stage.receives) {
    const void* data = stage.exchange->receive(transfer, nobody);
    for (const auto& message : stage.transport.messages) {
      if (!message.done) {
        EXPECT_NE(message.data, data);
      }
    }
    stage.exchange->release(transfer);
  }
}

TEST(Exchange, SendsCopyAndTakeTheNextBufferWhileOthersAreInFlight) {
  Nobody nobody;
  SecondStage stage(3, 1);
  const auto bytes = static_cast<std::size_t>(stage.exchange->transfer_bytes(stage.sends[0]));
  const std::int64_t prepared = stage.exchange->buffer_bytes();
  std::vector<std::byte> data(bytes);
  for (std::size_t k = 0; k < 3; ++k) {
    std::fill(data.begin(), data.end(), static_cast<std::byte>(k + 1));
    if (k == 2) stage.transport.messages[0].done = true;
    stage.exchange->make_room(stage.sends[k], nobody);
    stage.exchange->send(stage.sends[k], data.data());
  }
  std::fill(data.begin(), data.end(), std::byte{0});  // the sender goes on computing
  const auto& sent = stage.transport.messages;
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_NE(sent[1].data, sent[0].data) << "the first is still in flight";
  EXPECT_EQ(sent[2].data, sent[0].data) << "the first is done";
  EXPECT_EQ(*static_cast<std::byte*>(sent[1].data), std::byte{2});
  EXPECT_EQ(*static_cast<std::byte*>(sent[2].data), std::byte{3});
  EXPECT_EQ(stage.exchange->buffer_bytes(), prepared) << "as many as a peer that keeps up needs";
  stage.exchange->drain(nobody);
  for (const auto& message : sent) EXPECT_TRUE(message.done);
}

// Forwards alone would run ahead of the next stage by the whole test split.
TEST(Exchange, EvaluationWaitsOnceAWindowOfSendsIsInFlight) {
  Nobody nobody;
  const Graph graph = millrace::testing::small_network("mlp");
  const Program program = lower_evaluation(graph, millrace::testing::make_plan(graph, {1, 2, 6, "gpipe"}), 12);
  NotingTransport transport;
  Exchange exchange(graph, program, 0, kernels::Precision::fp32, transport);
  std::int64_t largest = 0;
  for (const Instruction& instruction : program.ranks[0].instructions) {
    if (instruction.kind != InstructionKind::send_activation) continue;
    const std::vector<std::byte> data(static_cast<std::size_t>(exchange.transfer_bytes(instruction.transfer)));
    exchange.make_room(instruction.transfer, nobody);
    exchange.send(instruction.transfer, data.data());
    largest = std::max(largest, exchange.transfer_bytes(instruction.transfer));
  }
  EXPECT_EQ(transport.messages.size(), 6U);
  EXPECT_EQ(exchange.buffer_bytes(), (program.receive_window + 1) * largest);
}

}  // namespace
}  // namespace millrace::runtime
