// Sums operator times, and finds which tensors cross between stages and which devices own which parameters.
#include "plan/stage_times.h"

#include <algorithm>
#include <map>

#include "graph/footprint.h"
#include "plan/rows.h"

namespace millrace::plan {
namespace {

class Timing {
 public:
  Timing(const Plan& plan, const Problem& problem) : plan_(plan), problem_(problem), graph_(*problem.graph) {}

  PlanTimes run() {
    times_.stages.resize(plan_.pipelines.size());
    for (int p = 0; p < static_cast<int>(plan_.pipelines.size()); ++p) {
      const auto& stages = plan_.pipelines[static_cast<std::size_t>(p)].stages;
      times_.stages[static_cast<std::size_t>(p)].resize(stages.size());
      for (int s = 0; s < static_cast<int>(stages.size()); ++s) compute({p, s});
      transfers(p);
    }
    reductions();
    return std::move(times_);
  }

 private:
  const Stage& stage(StageRef ref) const {
    return plan_.pipelines[static_cast<std::size_t>(ref.pipeline)].stages[static_cast<std::size_t>(ref.stage)];
  }
  StageTimes& times(StageRef ref) {
    return times_.stages[static_cast<std::size_t>(ref.pipeline)][static_cast<std::size_t>(ref.stage)];
  }

  std::vector<std::int64_t> rows_of(StageRef ref) const {
    std::vector<std::int64_t> rows;
    for (int r = 0; r < static_cast<int>(stage(ref).shares.size()); ++r) {
      rows.push_back(replica_rows(plan_, problem_.batch, ref, 0, r).size());
    }
    return rows;
  }

  void compute(StageRef ref) {
    const Stage& where = stage(ref);
    const std::vector<std::int64_t> rows = rows_of(ref);
    StageTimes& result = times(ref);
    Seconds slowest;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const int device = where.devices[r * static_cast<std::size_t>(where.tensor_parallel)];
      cost::OpTime total;
      for (const OpId op : where.ops) {
        const cost::OpTime time = problem_.cost->op_time(op, rows[r], device);
        total.forward += time.forward;
        total.backward_input += time.backward_input;
        total.backward_weight += time.backward_weight;
      }
      for (const OpId op : where.recompute) {  // run again before their backward (METHODS 3)
        total.backward_input += problem_.cost->op_time(op, rows[r], device).forward;
      }
      result.busy += total.total() * static_cast<double>(where.tensor_parallel);
      if (r > 0 && total.total() <= slowest) continue;
      slowest = total.total();
      result.forward = total.forward;
      result.backward = total.backward();
    }
  }

  // The slowest pair of devices of two stages decides.
  Seconds message(Bytes bytes, const Stage& from, const Stage& to) const {
    Seconds slowest;
    for (const int a : from.devices) {
      for (const int b : to.devices) slowest = std::max(slowest, problem_.cost->transfer_time(bytes, a, b));
    }
    return slowest;
  }

  void transfers(int pipeline) {
    const auto& stages = plan_.pipelines[static_cast<std::size_t>(pipeline)].stages;
    std::vector<int> stage_of(static_cast<std::size_t>(graph_.size()), -1);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      for (const OpId op : stages[s].ops) stage_of[static_cast<std::size_t>(op)] = static_cast<int>(s);
    }
    std::vector<std::vector<std::int64_t>> rows;
    for (int s = 0; s < static_cast<int>(stages.size()); ++s) rows.push_back(rows_of({pipeline, s}));

    for (TensorId id = 0; id < static_cast<TensorId>(graph_.tensors().size()); ++id) {
      const Tensor& tensor = graph_.tensor(id);
      if (tensor.producer < 0) continue;
      const int from = stage_of[static_cast<std::size_t>(tensor.producer)];
      std::vector<int> receivers;
      for (const OpId reader : graph_.consumers(id)) {
        const int to = stage_of[static_cast<std::size_t>(reader)];
        if (to != from) receivers.push_back(to);
      }
      std::sort(receivers.begin(), receivers.end());
      receivers.erase(std::unique(receivers.begin(), receivers.end()), receivers.end());
      const Bytes row = tensor_bytes(tensor, problem_.sizes.real);
      for (const int to : receivers) {
        const auto& to_rows = rows[static_cast<std::size_t>(to)];
        std::int64_t all = 0;
        for (const std::int64_t count : to_rows) all += count;
        const std::int64_t most = *std::max_element(to_rows.begin(), to_rows.end());
        times({pipeline, to}).transfer +=
            message(most * row, stages[static_cast<std::size_t>(from)], stages[static_cast<std::size_t>(to)]);
        times({pipeline, to}).received += all * row;
        times({pipeline, from}).sent += all * row;
      }
    }
  }

  void reductions() {
    std::map<TensorId, std::vector<StageRef>> users;
    for (int p = 0; p < static_cast<int>(plan_.pipelines.size()); ++p) {
      const int count = static_cast<int>(plan_.pipelines[static_cast<std::size_t>(p)].stages.size());
      for (int s = 0; s < count; ++s) {
        for (const OpId op : stage({p, s}).ops) {
          for (const auto* owned : {&graph_.op(op).parameters, &graph_.op(op).buffers}) {
            for (const TensorId id : *owned) {
              std::vector<StageRef>& list = users[id];
              if (list.empty() || list.back() != StageRef{p, s}) list.push_back({p, s});
            }
          }
        }
      }
    }
    std::map<std::vector<int>, Reduction> by_owners;
    for (const auto& [id, stages] : users) {
      std::vector<int> owners;
      for (const StageRef& ref : stages) {
        owners.insert(owners.end(), stage(ref).devices.begin(), stage(ref).devices.end());
      }
      std::sort(owners.begin(), owners.end());
      Reduction& reduction = by_owners[owners];
      reduction.stages = stages;
      reduction.devices = owners;
      reduction.bytes += tensor_bytes(graph_.tensor(id), problem_.sizes.real);
    }
    for (auto& [owners, reduction] : by_owners) {
      if (owners.size() < 2) continue;
      reduction.time = problem_.cost->all_reduce_time(reduction.bytes, owners);
      for (const StageRef& ref : reduction.stages) times(ref).reduction += reduction.time;
      times_.reductions.push_back(std::move(reduction));
    }
  }

  const Plan& plan_;
  const Problem& problem_;
  const Graph& graph_;
  PlanTimes times_;
};

}  // namespace

PlanTimes plan_times(const Plan& plan, const Problem& problem) { return Timing(plan, problem).run(); }

}  // namespace millrace::plan
