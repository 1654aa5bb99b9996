// Collectives of tensor-parallel ranks on a virtual clock: the members tell each other when they came, the rest is
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "comm/transport.h"

namespace millrace::comm {

using CollectiveTime = std::function<Seconds(Collective kind, Bytes bytes, std::span<const int> ranks)>;

/// One begins when all members have come and the one before is over. Each member sends every other one a header with a
/// share of up to 64 KiB of the data's size, so what travels grows with what is modelled.
class ModelledCollectives {
 public:
  /// \param inner  whose highest tag is free. It and `time` outlive this.
  ModelledCollectives(Transport& inner, const CollectiveTime& time) : inner_(inner), time_(time) {}

  /// \param now  model time at which this rank comes. Returns the number of the collective.
  std::int64_t start(Collective kind, std::int64_t bytes, std::span<const int> ranks, Seconds now);
  /// None as long as members are awaited. The answer is given once.
  std::optional<Seconds> end_of(std::int64_t number);

 private:
  struct Message {
    Ticket ticket = kNoTicket;  // spent when it is done
    std::vector<std::byte> buffer;
  };
  struct Flying {
    Collective kind = Collective::all_reduce;
    std::int64_t bytes = 0;
    std::vector<int> ranks;
    Seconds come{};
    std::vector<Message> sent, received;
  };
  bool is_here(Flying& collective);
  Seconds latest(const Flying& collective) const;

  Transport& inner_;
  const CollectiveTime& time_;
  std::deque<Flying> flying_;             // in the order of their starts
  std::int64_t settled_ = 0;              // those before the first of `flying_`
  std::map<std::int64_t, Seconds> ends_;  // by number: of those settled and not asked for
  Seconds free_{};                        // when the channel is
};

}  // namespace millrace::comm
