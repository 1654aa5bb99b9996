// The ranks of a job that search for a plan together, over MPI.
#pragma once

#include <string>
#include <vector>

#include "comm/mpi/world.h"
#include "plan/exchange.h"

namespace millrace::app {

class RankExchange : public plan::Exchange {
 public:
  /// `world` must outlive it.
  explicit RankExchange(const comm::World& world) : world_(&world) {}

  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }
  std::vector<std::string> gather_to_all(const std::string& mine) override;

 private:
  const comm::World* world_;
};

}  // namespace millrace::app
