// Turns a compute order into steps of the simulator: transfers around each pass, reductions and updates at the end.
#include "planner/step_job.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/index.h"
#include "program/stage_dag.h"
#include "schedules/registry.h"

namespace millrace::planner {
namespace {

using sim::Step;
using sim::StepKind;
using sim::Traffic;

Plan pipeline_plan(const Layout& layout) {
  Plan plan;
  plan.schedule = layout.schedule;
  Pipeline pipeline;
  pipeline.micro_batches = layout.micro_batches();
  for (int i = 0; i < layout.stages(); ++i) {
    Stage stage;
    stage.devices = {i % layout.pipeline};
    stage.shares = {1.0};
    pipeline.stages.push_back(std::move(stage));
  }
  plan.pipelines.push_back(std::move(pipeline));
  return plan;
}

StageDag chain(int stages) {
  StageDag dag;
  dag.successors.resize(at(stages));
  dag.predecessors.resize(at(stages));
  for (int i = 0; i < stages; ++i) {
    if (i + 1 < stages) dag.successors[at(i)].push_back(i + 1);
    if (i > 0) dag.predecessors[at(i)].push_back(i - 1);
    dag.depth_from_end.push_back(stages - 1 - i);
  }
  return dag;
}

double total(const PassTime& pass) { return pass.compute + pass.tensor; }

StageCosts schedule_costs(const Layout& layout, const StepCosts& costs) {
  StageCosts result;
  for (const StageTimes& stage : costs.stages) {
    const double weight = total(stage.backward_weight);
    result.forward.emplace_back(total(stage.forward));
    result.backward.emplace_back(total(stage.backward_input) + weight);
    result.backward_weight.emplace_back(weight);
  }
  for (const double hop : costs.hops) result.hop.emplace_back(hop);
  result.hop.emplace_back(0.0);
  if (layout.live_limit > 0) {
    // Per token and layer (34h + 5as) bytes are kept, 32h of them until the weights' gradients (Qi et al. 2024).
    const auto h = layout.model.hidden;
    const std::int64_t kept = 34 * h + 5 * layout.model.heads * layout.model.sequence;
    result.activations.assign(at(layout.stages()), Bytes(kept));
    result.kept_for_weights.assign(at(layout.stages()), Bytes(32 * h));
    const double most = layout.live_limit * layout.pipeline * layout.chunks * static_cast<double>(kept);
    result.limit.assign(at(layout.pipeline), Bytes(static_cast<std::int64_t>(most)));
  }
  return result;
}

// Writes the list of one device at a time.
class JobWriter {
 public:
  JobWriter(const Layout& layout, const StepCosts& costs, const ComputeOrder& order)
      : layout_(layout), costs_(costs), order_(order), last_(layout.stages() - 1) {
    const bool split = splits_backward(order);
    waits_ = !layout.overlapped && !split;
    tied_ = layout.pipeline > 1 && !split;
  }

  sim::Job write() {
    const std::int64_t replicas = std::int64_t{layout_.tensor} * layout_.data;
    for (int d = 0; d < layout_.pipeline; ++d) job_.add_rank(0, replicas);
    connect();
    number_receives();
    add_groups();
    for (int d = 0; d < layout_.pipeline; ++d) {
      job_.ranks[at(d)].program = job_.add_program(list_of(d));
    }
    // Messages wait in their buffers, not for a posted receive.
    job_.receive_window = static_cast<int>(layout_.micro_batches());
    return std::move(job_);
  }

 private:
  struct Ends {
    std::int16_t sender = 0, receiver = 0;  // slots
  };

  int device(int stage) const { return stage % layout_.pipeline; }
  // The pair of devices between virtual stages i and i + 1: each pair is one edge a direction.
  std::size_t pair(int stage) const { return at(device(stage)); }

  Ends edge(int from, int to) {
    job_.connect(from, to, 0, 0);
    return {static_cast<std::int16_t>(job_.ranks[at(from)].edges.size() - 1),
            static_cast<std::int16_t>(job_.ranks[at(to)].edges.size() - 1)};
  }

  void connect() {
    const int pairs = std::min(layout_.pipeline, layout_.stages() - 1);
    for (int i = 0; i < pairs && layout_.pipeline > 1; ++i) {
      activations_.push_back(edge(device(i), device(i + 1)));
      gradients_.push_back(edge(device(i + 1), device(i)));
    }
  }

  bool receives_activation(const ComputeAction& a) const { return a.kind == ComputeKind::forward && a.stage > 0; }
  bool receives_gradient(const ComputeAction& a) const {
    return (a.kind == ComputeKind::backward || a.kind == ComputeKind::backward_input) && a.stage < last_;
  }

  // Messages of an edge count in the order in which they are received.
  void number_receives() {
    const auto m = layout_.micro_batches();
    activation_index_.assign(at(layout_.stages() * m), 0);
    gradient_index_.assign(at(layout_.stages() * m), 0);
    std::vector<std::int32_t> next_activation(activations_.size(), 0), next_gradient(gradients_.size(), 0);
    if (layout_.pipeline == 1) return;
    for (const auto& actions : order_.ranks()) {
      for (const ComputeAction& a : actions) {
        const std::size_t place = at(a.stage * m + a.micro_batch);
        if (receives_activation(a)) activation_index_[place] = next_activation[pair(a.stage - 1)]++;
        if (receives_gradient(a)) gradient_index_[place] = next_gradient[pair(a.stage)]++;
      }
    }
  }

  void add_groups() {
    for (int d = 0; d < layout_.pipeline; ++d) {
      tensor_slot_ = add_group({d}, layout_.tensor);
      data_slot_ = add_group({d}, layout_.data);
    }
    if (tied_) tied_slot_ = add_group({0, layout_.pipeline - 1}, 0);
  }

  std::int16_t add_group(std::vector<std::int32_t> members, std::int64_t size) {
    const std::int32_t first = members.front();
    job_.add_group(std::move(members), size);
    return static_cast<std::int16_t>(job_.ranks[at(first)].groups.size() - 1);
  }

  void push(Step step) { steps_.push_back(step); }
  void compute(double seconds) { push({.kind = StepKind::compute, .seconds = seconds}); }
  void collective(std::int16_t slot, Traffic traffic, double seconds, StepKind kind = StepKind::collective) {
    push({.kind = kind, .traffic = traffic, .slot = slot, .seconds = seconds});
  }

  void pass(const PassTime& time) {
    compute(time.compute);
    if (layout_.tensor > 1) collective(tensor_slot_, Traffic::tensor, time.tensor);
  }

  void send(std::int16_t slot, std::int32_t index, double hop) {
    if (waits_) compute(hop);
    push({.kind = StepKind::send, .slot = slot, .index = index, .seconds = waits_ ? 0 : hop});
  }
  void receive(std::int16_t slot, std::int32_t index) {
    push({.kind = StepKind::receive, .slot = slot, .index = index});
  }

  void forward(const ComputeAction& a) {
    const std::int64_t m = layout_.micro_batches();
    const bool alone = layout_.pipeline == 1;
    if (a.stage > 0 && !alone) {
      receive(activations_[pair(a.stage - 1)].receiver, activation_index_[at(a.stage * m + a.micro_batch)]);
    }
    pass(costs_.stages[at(a.stage)].forward);
    if (a.stage < last_ && !alone) {
      send(activations_[pair(a.stage)].sender, activation_index_[at((a.stage + 1) * m + a.micro_batch)],
           costs_.hops[at(a.stage)]);
    }
  }

  void backward(const ComputeAction& a, bool with_weight) {
    const std::int64_t m = layout_.micro_batches();
    const bool alone = layout_.pipeline == 1;
    const StageTimes& times = costs_.stages[at(a.stage)];
    if (a.stage < last_ && !alone) {
      receive(gradients_[pair(a.stage)].receiver, gradient_index_[at(a.stage * m + a.micro_batch)]);
    }
    PassTime time = times.backward_input;
    if (with_weight) {
      time.compute += times.backward_weight.compute;
      time.tensor += times.backward_weight.tensor;
    }
    pass(time);
    if (a.stage > 0 && !alone) {
      send(gradients_[pair(a.stage - 1)].sender, gradient_index_[at((a.stage - 1) * m + a.micro_batch)],
           costs_.hops[at(a.stage - 1)]);
    }
  }

  void act(const ComputeAction& a) {
    switch (a.kind) {
      case ComputeKind::forward:
        return forward(a);
      case ComputeKind::backward:
        return backward(a, true);
      case ComputeKind::backward_input:
        return backward(a, false);
      case ComputeKind::backward_weight:
        return pass(costs_.stages[at(a.stage)].backward_weight);
      default:
        throw InvalidInput("schedules that keep several versions of the weights have no training step of their own");
    }
  }

  void start(double seconds) {
    push({.kind = StepKind::start_collective,
          .traffic = Traffic::gradients,
          .slot = data_slot_,
          .index = started_++,
          .seconds = seconds});
  }
  void gather(int d) {
    for (int i = d; i < layout_.stages(); i += layout_.pipeline) start(costs_.gathering[at(i)]);
  }
  // Gathers were started in the order of the virtual stages.
  void wait_gathered(int stage) {
    push({.kind = StepKind::wait_collective,
          .traffic = Traffic::gradients,
          .slot = data_slot_,
          .index = stage / layout_.pipeline});
  }

  std::vector<Step> list_of(int d) {
    steps_.clear();
    started_ = 0;
    const std::vector<ComputeAction>& actions = order_.ranks()[at(d)];
    const bool beside = layout_.overlapped && layout_.data > 1;
    if (beside) gather(d);
    std::vector<std::int64_t> backwards(at(layout_.stages()), 0);
    std::vector<bool> seen(at(layout_.stages()), false);
    for (const ComputeAction& a : actions) {
      const bool first = !seen[at(a.stage)];
      seen[at(a.stage)] = true;
      // A stage's weights arrive beside the computation before it; those of the first, beside its own.
      if (beside && first && a.stage >= layout_.pipeline) wait_gathered(a.stage);
      const bool ends = a.kind == ComputeKind::backward || a.kind == ComputeKind::backward_weight;
      // Buckets of a stage are reduced while the backward pass of its last micro-batch goes on (METHODS 5).
      const bool last = ends && ++backwards[at(a.stage)] == layout_.micro_batches();
      if (beside && last) start(costs_.reduction[at(a.stage)]);
      act(a);
      if (beside && first && a.stage < layout_.pipeline) wait_gathered(a.stage);
    }
    if (beside) push({.kind = StepKind::wait_started});
    if (layout_.data > 1 && !beside) {
      double seconds = 0;
      for (int i = d; i < layout_.stages(); i += layout_.pipeline) {
        seconds += costs_.reduction[at(i)] + costs_.gathering[at(i)];
      }
      collective(data_slot_, Traffic::gradients, seconds);
    }
    if (tied_ && (d == 0 || d + 1 == layout_.pipeline)) {
      collective(tied_slot_, Traffic::gradients, costs_.tied);
    }
    compute(costs_.update[at(d)]);
    return steps_;
  }

  const Layout& layout_;
  const StepCosts& costs_;
  const ComputeOrder& order_;
  int last_;
  bool waits_ = true, tied_ = false;
  sim::Job job_;
  std::vector<Step> steps_;
  std::vector<Ends> activations_, gradients_;  // by pair
  std::vector<std::int32_t> activation_index_, gradient_index_;
  std::int32_t started_ = 0;  // collectives of the device's replicas so far
  std::int16_t tensor_slot_ = 0, data_slot_ = 0, tied_slot_ = 0;
};

}  // namespace

ComputeOrder step_order(const Layout& layout, const StepCosts& costs) {
  return schedules::compute_order(pipeline_plan(layout), chain(layout.stages()), schedule_costs(layout, costs));
}

bool splits_backward(const ComputeOrder& order) {
  for (const auto& actions : order.ranks()) {
    for (const ComputeAction& action : actions) {
      if (action.kind == ComputeKind::backward_input) return true;
    }
  }
  return false;
}

sim::Job step_job(const Layout& layout, const StepCosts& costs, const ComputeOrder& order) {
  return JobWriter(layout, costs, order).write();
}

std::vector<std::int64_t> peak_live_layers(const Layout& layout, const ComputeOrder& order) {
  const std::vector<int> layers = layers_of_stages(layout);
  std::vector<std::int64_t> peaks;
  for (const auto& actions : order.ranks()) {
    std::int64_t live = 0, peak = 0;
    for (const ComputeAction& a : actions) {
      if (a.kind == ComputeKind::forward) live += layers[at(a.stage)];
      peak = std::max(peak, live);
      if (a.kind == ComputeKind::backward || a.kind == ComputeKind::backward_weight) live -= layers[at(a.stage)];
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace millrace::planner
