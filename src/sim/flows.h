// Computation and transfers whose speed depends on what else goes on: shared ports and overlap slow-down.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/heap.h"
#include "sim/job.h"

namespace millrace::sim {

/// Work in progress. A transfer runs at min(1, 1 / Σ loads) of its fullest port; computation and transfers of a rank
/// run 1 / overlap as fast while both go on. Ends are events of the heap, with keys that flow_key() makes.
class Flows {
 public:
  Flows(std::int32_t ports, std::size_t ranks, double overlap, EventHeap& heap);

  /// `token` comes back when it ends. `work`: seconds when alone. Spans must live as long.
  void begin_compute(double time, std::int32_t rank, double work, std::int64_t token);
  void begin_transfer(double time, double work, std::span<const PortUse> ports, std::span<const std::int32_t> ranks,
                      std::int64_t token);

  struct Ended {
    std::int64_t token = 0;
    double began = 0;
  };
  /// False when the event is of an end that has moved since; else the flow is over.
  bool end(const Event& event, Ended& ended);

  static std::int64_t flow_key(std::int64_t flow) { return flow * 4 + 2; }
  static bool is_flow(std::int64_t key) { return key % 4 == 2; }

 private:
  struct Flow {
    std::int64_t token = 0;
    double began = 0, updated = 0, left = 0, rate = 0, end = 0;
    std::span<const PortUse> ports{};
    std::span<const std::int32_t> ranks{};
    std::int32_t computes = -1;  // the rank, of computation
    bool alive = false;
  };
  struct RankFlows {
    std::int32_t compute = -1;
    std::vector<std::int32_t> transfers;
  };
  struct Port {
    double load = 0;
    std::vector<std::int32_t> flows;
  };

  std::int32_t add(Flow flow);
  double rate(const Flow& flow) const;
  void rerate(double time, std::int32_t flow);
  void rerate_transfers_of(double time, std::int32_t rank);
  void rerate_around(double time, const Flow& flow);

  double overlap_;
  EventHeap& heap_;
  std::vector<Flow> flows_;
  std::vector<std::int32_t> unused_;
  std::vector<RankFlows> ranks_;
  std::vector<Port> ports_;
};

}  // namespace millrace::sim
