// What stands in for the machine of an emulated cluster: a device, a network and a clock that model it on each rank.
#pragma once

#include <memory>
#include <vector>

#include "app/session.h"
#include "base/virtual_clock.h"
#include "comm/emulated/emulated_transport.h"
#include "comm/mpi/world.h"
#include "cost/cost_model.h"
#include "kernels/emulated/emulated_device.h"
#include "program/program.h"
#include "runtime/trainer.h"
#include "sim/costs.h"

namespace millrace::app {

/// How well a run kept the modelled time.
struct EmulationFacts {
  double time_dilation = 1;          ///< real seconds of a modelled second
  double real_iteration_time_s = 0;  ///< by the real clock, over the dilation; of the rank furthest from model time
  double mean_lateness_s = 0;        ///< real time after the deadlines, of the rank that was latest
  double largest_lateness_s = 0;
  bool disturbed = false;  ///< the real clock is so far off that this machine was too busy
};

/// What the devices of an emulated cluster would hold: their sizes without times, for forecasts.
class EmulatedSizes {
 public:
  /// `session` outlives it.
  explicit EmulatedSizes(const Session& session);
  kernels::Device& device() { return *device_; }

 private:
  VirtualClock clock_{1.0};
  std::unique_ptr<kernels::Device> device_;
};

class Emulation {
 public:
  /// Costs are those that the simulator takes under `contention: fixed`, so that both interpret a program alike. The
  /// dilation makes the smallest kernel of any rank last a few milliseconds; it is the same on all ranks.
  /// `session`, `program` and `inner` outlive it.
  Emulation(const Session& session, const Program& program, comm::Transport& inner);

  comm::Transport& transport() { return transport_; }
  /// The device and the clock of the trainer.
  void stand_in(runtime::Surroundings& around);
  /// Model time begins, on all ranks together. Collective.
  void start(const comm::World& world);
  /// Collective; rank 0 learns the facts of all.
  EmulationFacts facts(const comm::World& world) const;

 private:
  struct End {
    double model = 0, real = 0;
  };
  Seconds kernel_time(kernels::Work work, std::span<const OpId> ops, std::int64_t rows) const;
  kernels::EmulatedModel model() const;
  comm::LinkModel links() const;

  const Session& session_;
  const Program& program_;
  int rank_;
  std::unique_ptr<cost::CostModel> cost_;
  sim::SimCosts costs_;
  VirtualClock clock_;
  std::unique_ptr<kernels::Device> device_;
  comm::EmulatedTransport transport_;
  std::vector<End> ends_;  // of the iterations so far, in seconds of the model
};

}  // namespace millrace::app
