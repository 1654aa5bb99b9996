// The rules of Placement, stage by stage.
#include "schedules/placement.h"

#include <string_view>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::schedules {
namespace {

void seat(Stage& stage, const Seat& at) {
  stage.devices = at.devices;
  stage.shares = at.shares;
  stage.tensor_parallel = at.tensor_parallel;
}

bool fits(std::size_t stages, std::size_t seats, Placement placement) {
  if (seats == 0) return false;
  if (placement == Placement::in_turn) return stages % seats == 0 && stages > 0;
  return stages == (placement == Placement::vee ? 2 * seats : seats);
}

std::string_view rule(Placement placement) {
  switch (placement) {
    case Placement::vee:
      return "two stages each";
    case Placement::in_turn:
      return "the same number of stages each";
    default:
      return "one stage each";
  }
}

}  // namespace

std::vector<Pipeline> place(const Pipeline& pipeline, const std::vector<Seat>& seats, Placement placement) {
  const std::size_t stages = pipeline.stages.size();
  const std::size_t p = seats.size();
  if (!fits(stages, p, placement)) {
    throw InvalidInput(fmt::format("{} stages do not go on {} places, which take {}", stages, p, rule(placement)));
  }
  Pipeline placed = pipeline;
  for (std::size_t s = 0; s < stages; ++s) {
    const bool back = placement == Placement::vee && s >= p;
    seat(placed.stages[s], seats[back ? stages - 1 - s : s % p]);
  }
  if (placement != Placement::both_ways) return {placed};
  if (pipeline.micro_batches % 2 != 0) {
    throw InvalidInput(
        fmt::format("{} micro-batches cannot be dealt to the two directions of the pipelines: micro_batches must be "
                    "even",
                    pipeline.micro_batches));
  }
  placed.micro_batches /= 2;
  placed.share /= 2;
  Pipeline reversed = placed;
  for (std::size_t s = 0; s < stages; ++s) seat(reversed.stages[s], seats[p - 1 - s]);
  return {placed, reversed};
}

}  // namespace millrace::schedules
