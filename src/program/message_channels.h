// The buffers that messages are sent from: how many a channel needs, so that a rank that waits for one never hangs.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace millrace {

/// The messages of one tensor from one rank to another. They share a ring of buffers on either side.
struct MessageChannel {
  Direction direction = Direction::activation;
  TensorId tensor = -1;
  std::int32_t from_stage = -1;  ///< indices in Program::stages
  std::int32_t to_stage = -1;
  std::int32_t sender = -1;  ///< ranks
  std::int32_t receiver = -1;
  std::vector<std::int32_t> transfers{};  ///< of one round, by index
  std::int64_t rows = 0;                  ///< of the longest message
  int receive_buffers = 1;                ///< the receive window and the message that is waited for, no more than come
  /// A send waits while so many messages before it are not received: memory is then what was planned, however late a
  /// peer is. At least as many as a peer that keeps up has posted receives for, and more where ranks would wait for
  /// each other in a circle (Parks, Bounded scheduling of process networks, 1995).
  int send_buffers = 1;
};

/// All channels of the program, the same on every rank.
std::vector<MessageChannel> message_channels(const Program& program);

}  // namespace millrace
