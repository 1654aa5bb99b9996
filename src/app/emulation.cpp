// The costs of the simulator, handed to the emulated device and the emulated network.
#include "app/emulation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "app/planning.h"
#include "app/prediction.h"
#include "plan/memory.h"
#include "planner/simulated.h"
#include "sim/pieces.h"

namespace millrace::app {
namespace {

constexpr Seconds kSmallestKernel = 3_ms;  // real time: what a machine with fewer cores than ranks keeps well
constexpr double kDisturbed = 0.02;        // of the iterations' time

InstructionKind instruction_of(kernels::Work work) {
  switch (work) {
    case kernels::Work::backward:
      return InstructionKind::backward;
    case kernels::Work::backward_input:
      return InstructionKind::backward_input;
    case kernels::Work::backward_weight:
      return InstructionKind::backward_weight;
    case kernels::Work::recompute:
      return InstructionKind::recompute;
    default:
      return InstructionKind::forward;
  }
}

InstructionKind instruction_of(comm::Collective kind) {
  switch (kind) {
    case comm::Collective::all_gather:
      return InstructionKind::all_gather;
    case comm::Collective::reduce_scatter:
      return InstructionKind::reduce_scatter;
    case comm::Collective::all_to_all:
      return InstructionKind::all_to_all;
    default:
      return InstructionKind::all_reduce;
  }
}

bool is_kernel(InstructionKind kind) {
  return kind == InstructionKind::forward || kind == InstructionKind::backward ||
         kind == InstructionKind::backward_input || kind == InstructionKind::backward_weight;
}

sim::Options emulated_options(const Session& session) {
  sim::Options options = session.experiment.simulation.options;
  options.contention = sim::Contention::fixed;
  return options;
}

std::int64_t element_bytes(const Session& session) {
  return kernels::carried_bytes(session.experiment.train.precision);
}

// Real seconds of a modelled one.
double dilation_of(const Program& program, const sim::SimCosts& costs) {
  double smallest = std::numeric_limits<double>::infinity();
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    for (const Instruction& instruction : program.ranks[rank].instructions) {
      if (!is_kernel(instruction.kind)) continue;
      const ProgramStage& stage = program.stages[static_cast<std::size_t>(instruction.stage)];
      const auto place = std::find(stage.ranks.begin(), stage.ranks.end(), static_cast<int>(rank));
      const std::size_t replica = stage.replica_of(static_cast<std::size_t>(place - stage.ranks.begin()));
      const std::int64_t rows = stage.rows[static_cast<std::size_t>(instruction.micro_batch)][replica].size();
      if (rows == 0) continue;
      const Seconds time = costs.compute({.kind = instruction.kind,
                                          .stage = instruction.stage,
                                          .rank = static_cast<int>(rank),
                                          .rows = rows,
                                          .ops = stage.ops}) /
                           stage.tensor_parallel;
      if (time > Seconds(0)) smallest = std::min(smallest, time.value());
    }
  }
  return std::isfinite(smallest) ? kSmallestKernel.value() / smallest : 1.0;
}

// Messages are not the device's.
auto modelled_bytes(const Session& session) {
  const plan::TrainingBytes sizes = training_bytes(session.experiment);
  return [sizes](const StageGraph& stage, std::int64_t rows, std::span<const OpId> recompute) {
    const plan::AnalyticBytes bytes(*stage.graph, sizes);  // of a part where the stage is tensor-parallel
    const plan::StageFootprint footprint = bytes.footprint(stage.ops, rows, recompute);
    return kernels::ExecutableBytes{footprint.per_slot.value(), footprint.workspace.value(), 0};
  };
}

}  // namespace

EmulatedSizes::EmulatedSizes(const Session& session) {
  kernels::EmulatedModel model;
  model.time = [](kernels::Work, std::span<const OpId>, std::int64_t) { return Seconds(0); };
  model.bytes = modelled_bytes(session);
  model.update = [](Bytes) { return Seconds(0); };
  device_ = kernels::make_emulated_device(std::move(model), clock_);
}

Emulation::Emulation(const Session& session, const Program& program, comm::Transport& inner)
    : session_(session),
      program_(program),
      rank_(inner.rank()),
      cost_(make_costs(session)),
      costs_(planner::costs_of(*cost_, session.cluster, element_bytes(session), emulated_options(session))),
      clock_(dilation_of(program, costs_)),
      device_(kernels::make_emulated_device(model(), clock_)),
      transport_(inner, clock_, links()) {}

Seconds Emulation::kernel_time(kernels::Work work, std::span<const OpId> ops, std::int64_t rows) const {
  if (ops.empty()) return Seconds(0);
  // The stage of this rank that holds the operators.
  const auto held = [&](const ProgramStage& stage) {
    return std::binary_search(stage.ops.begin(), stage.ops.end(), ops.front()) &&
           std::find(stage.ranks.begin(), stage.ranks.end(), rank_) != stage.ranks.end();
  };
  const auto stage = std::find_if(program_.stages.begin(), program_.stages.end(), held) - program_.stages.begin();
  const sim::Piece piece{
      .kind = instruction_of(work), .stage = static_cast<std::int32_t>(stage), .rank = rank_, .rows = rows, .ops = ops};
  return sim::time_of(piece, program_, costs_) * session_.experiment.train.slowdown;
}

kernels::EmulatedModel Emulation::model() const {
  kernels::EmulatedModel model;
  model.time = [this](kernels::Work work, std::span<const OpId> ops, std::int64_t rows) {
    return kernel_time(work, ops, rows);
  };
  model.bytes = modelled_bytes(session_);
  model.update = [this](Bytes values) { return costs_.update(values, rank_) * session_.experiment.train.slowdown; };
  return model;
}

comm::LinkModel Emulation::links() const {
  comm::LinkModel links;
  links.message = costs_.transfer;
  const auto collective = [this](InstructionKind kind) {
    return [this, kind](Bytes bytes, std::span<const int> ranks) { return costs_.collective(kind, bytes, ranks); };
  };
  links.collective = [this](comm::Collective kind, Bytes bytes, std::span<const int> ranks) {
    return costs_.collective(instruction_of(kind), bytes, ranks);
  };
  links.all_reduce = collective(InstructionKind::all_reduce);
  links.reduce_scatter = collective(InstructionKind::reduce_scatter);
  links.all_gather = collective(InstructionKind::all_gather);
  links.half_duplex = session_.experiment.simulation.options.half_duplex;
  return links;
}

void Emulation::stand_in(runtime::Surroundings& around) {
  around.device = device_.get();
  around.clock = [this] { return clock_.now(); };
  around.iteration_ended = [this] { ends_.push_back({clock_.now().value(), clock_.elapsed().value()}); };
}

void Emulation::start(const comm::World& world) {
  world.barrier();
  clock_.start();
}

EmulationFacts Emulation::facts(const comm::World& world) const {
  const Lateness lateness = clock_.lateness();
  const std::size_t first = ends_.size() >= 5 ? 1 : 0;  // what warms up counts as little as in the median
  const double count = static_cast<double>(ends_.size() - 1 - first);
  const double model = count > 0 ? (ends_.back().model - ends_[first].model) / count : clock_.now().value();
  const double real = count > 0 ? (ends_.back().real - ends_[first].real) / count : clock_.elapsed().value();
  const nlohmann::json own{lateness.mean.value(), lateness.largest.value(), model, real};
  EmulationFacts facts;
  facts.time_dilation = clock_.dilation();
  double furthest = -1;
  for (const std::string& text : world.gather(own.dump())) {
    const nlohmann::json its = nlohmann::json::parse(text);
    facts.mean_lateness_s = std::max(facts.mean_lateness_s, its[0].get<double>());
    facts.largest_lateness_s = std::max(facts.largest_lateness_s, its[1].get<double>());
    const double its_model = its[2].get<double>(), its_real = its[3].get<double>();
    const double off = its_model > 0 ? std::abs(its_real / its_model - 1) : 0;
    if (off > furthest) facts.real_iteration_time_s = its_real;
    furthest = std::max(furthest, off);
    facts.disturbed = furthest > kDisturbed;
  }
  return facts;
}

}  // namespace millrace::app
