// Lanes get a key of all that their time depends on; what has the same key is equal.
#include "planner/fold_plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/index.h"
#include "plan/plan_cuts.h"
#include "plan/rows.h"
#include "schedules/registry.h"

namespace millrace::planner {
namespace {

using Key = std::vector<std::uint64_t>;

constexpr Bytes kProbe = 1_MiB;  // a message takes latency + bytes · β: two sizes tell links apart

void add(Key& key, std::int64_t number) { key.push_back(static_cast<std::uint64_t>(number)); }
void add(Key& key, double number) { key.push_back(std::bit_cast<std::uint64_t>(number)); }
void add(Key& key, Seconds time) { add(key, time.value()); }
void add(Key& key, const OpList& ops) { key.push_back(hash64(std::as_bytes(std::span(ops.vector())))); }

std::size_t replicas(const Stage& stage) { return stage.devices.size() / at(stage.tensor_parallel); }

// Numbers of keys, in the order in which they come.
class Numbers {
 public:
  int of(const Key& key) { return known_.try_emplace(key, static_cast<int>(known_.size())).first->second; }

 private:
  std::map<Key, int> known_;
};

// A pipeline as lanes.
struct Lanes {
  std::vector<int> classes;  // by lane
  std::vector<int> kept;     // ascending
};

// Of each class the first stands for itself, the second for itself and all after it.
template <class Class>
std::vector<int> first_two(const std::vector<Class>& classes) {
  std::map<Class, int> met;
  std::vector<int> kept;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (met[classes[i]]++ < 2) kept.push_back(static_cast<int>(i));
  }
  return kept;
}

template <class Class>
std::vector<int> representatives(const std::vector<Class>& classes) {
  std::map<Class, std::pair<int, int>> met;  // first and latest kept
  std::vector<int> of;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto here = static_cast<int>(i);
    const auto [known, is_new] = met.try_emplace(classes[i], here, here);
    if (!is_new && known->second.first == known->second.second) known->second.second = here;
    of.push_back(known->second.second);
  }
  return of;
}

class PlanFolder {
 public:
  PlanFolder(const Plan& plan, const Graph& graph, std::int64_t batch, const cluster::Cluster& cluster,
             const sim::SimCosts& costs, std::span<const sim::Straggler> stragglers)
      : plan_(plan),
        cluster_(cluster),
        costs_(costs),
        cuts_(plan::plan_cuts(plan, graph)),
        slowness_(at(cluster.size()), 1.0) {
    std::vector<double> shares;
    for (const Pipeline& pipeline : plan.pipelines) shares.push_back(pipeline.share);
    rows_ = largest_remainder(batch, shares);
    for (const sim::Straggler& one : stragglers) slowness_.at(at(one.rank)) *= one.factor;
  }

  FoldedPlan fold() {
    std::vector<std::vector<int>> classes;
    for (std::size_t p = 0; p < plan_.pipelines.size(); ++p) {
      lanes_.push_back(lanes(p));
      classes.push_back(lanes_.back().classes);
    }
    pipeline_for_ = representatives(classes);
    write();
    return std::move(out_);
  }

 private:
  // The most lanes that have equal rows of every micro-batch.
  std::size_t lane_count(std::size_t p) const {
    const Pipeline& pipeline = plan_.pipelines[p];
    if (rows_[p] % pipeline.micro_batches != 0) return 1;
    std::size_t most = 0;
    for (const Stage& stage : pipeline.stages) {
      most = std::gcd(most, replicas(stage));
      for (const double share : stage.shares) {
        if (share != stage.shares.front()) return 1;
      }
      if (rows_[p] / pipeline.micro_batches % static_cast<std::int64_t>(replicas(stage)) != 0) return 1;
    }
    return most;
  }

  std::span<const int> devices(const Stage& stage, std::size_t lane, std::size_t lanes) const {
    const std::size_t size = stage.devices.size() / lanes;
    return std::span(stage.devices).subspan(lane * size, size);
  }

  Lanes lanes(std::size_t p) {
    const Pipeline& pipeline = plan_.pipelines[p];
    const std::size_t count = lane_count(p);
    Key common;
    add(common, static_cast<std::int64_t>(count));
    add(common, rows_[p]);
    add(common, pipeline.micro_batches);
    add(common, static_cast<std::int64_t>(cuts_.of_pipeline[p]));
    for (const int warmup : pipeline.warmup) add(common, std::int64_t{warmup});
    for (const Stage& stage : pipeline.stages) {
      add(common, static_cast<std::int64_t>(stage.devices.size()));
      add(common, std::int64_t{stage.tensor_parallel});
      add(common, stage.recompute);
      for (const double share : stage.shares) add(common, share);
    }
    Lanes out;
    for (std::size_t lane = 0; lane < count; ++lane) {
      Key key = common;
      std::map<int, std::int64_t> met;  // which stages share devices
      for (const Stage& stage : pipeline.stages) {
        const std::span<const int> here = devices(stage, lane, count);
        for (const int d : here) {
          add(key, met.try_emplace(d, static_cast<std::int64_t>(met.size())).first->second);
          add(key, std::int64_t{cluster_.first_alike(d)});
          add(key, slowness_[at(d)]);
        }
        const auto shards = at(stage.tensor_parallel);
        for (std::size_t i = 0; shards > 1 && i < here.size(); i += shards) {
          add(key, costs_.collective(InstructionKind::all_reduce, kProbe, here.subspan(i, shards)));
        }
      }
      add_links(key, p, lane, count);
      out.classes.push_back(lane_numbers_.of(key));
    }
    out.kept = first_two(out.classes);
    return out;
  }

  void add_links(Key& key, std::size_t p, std::size_t lane, std::size_t count) const {
    const std::vector<Stage>& stages = plan_.pipelines[p].stages;
    std::pair<int, int> last{-1, -1};
    for (const plan::Crossing& crossing : cuts_.cuts[at(cuts_.of_pipeline[p])].crossings) {
      if (std::exchange(last, {crossing.from, crossing.to}) == std::pair(crossing.from, crossing.to)) continue;
      for (const int from : devices(stages[at(crossing.from)], lane, count)) {
        for (const int to : devices(stages[at(crossing.to)], lane, count)) {
          if (from == to) continue;
          for (const Bytes bytes : {0_B, kProbe}) {
            add(key, costs_.transfer(bytes, from, to));
            add(key, costs_.transfer(bytes, to, from));
          }
        }
      }
    }
  }

  // Devices of the lane, stage by stage, and of the one that stands for it.
  template <class Use>
  void for_each_device(const Use& use) const {
    for (std::size_t p = 0; p < plan_.pipelines.size(); ++p) {
      const std::size_t q = at(pipeline_for_[p]), count = lanes_[p].classes.size();
      const std::vector<int> stand_in = representatives(lanes_[q].classes);
      for (std::size_t s = 0; s < plan_.pipelines[p].stages.size(); ++s) {
        for (std::size_t lane = 0; lane < count; ++lane) {
          const std::span<const int> from = devices(plan_.pipelines[p].stages[s], lane, count);
          const std::span<const int> to = devices(plan_.pipelines[q].stages[s], at(stand_in[lane]), count);
          for (std::size_t i = 0; i < from.size(); ++i) use(from[i], to[i]);
        }
      }
    }
  }

  void write() {
    std::vector<int> stands(at(cluster_.size()), -1);
    for_each_device([&](int device, int kept) { stands[at(device)] = kept; });
    out_.device_of = stands;
    std::sort(out_.device_of.begin(), out_.device_of.end());
    out_.device_of.erase(std::unique(out_.device_of.begin(), out_.device_of.end()), out_.device_of.end());
    std::vector<int> rank(at(cluster_.size()), -1);
    for (std::size_t r = 0; r < out_.device_of.size(); ++r) rank[at(out_.device_of[r])] = static_cast<int>(r);
    out_.stands_for.resize(out_.device_of.size());
    for (std::size_t d = 0; d < stands.size(); ++d) {
      out_.rank_of.push_back(rank[at(stands[d])]);
      out_.stands_for[at(out_.rank_of.back())].push_back(static_cast<int>(d));
    }
    write_plan(rank);
  }

  void write_plan(const std::vector<int>& rank) {
    out_.plan.model = plan_.model;
    out_.plan.graph_digest = plan_.graph_digest;
    out_.plan.schedule = plan_.schedule;
    out_.plan.schedule_options = plan_.schedule_options;
    out_.plan.bucket_size = plan_.bucket_size;
    std::vector<std::int32_t> first(plan_.pipelines.size(), -1);  // flat stage of each kept pipeline
    std::vector<std::int64_t> kept_rows;
    std::int32_t flat = 0;
    for (std::size_t p = 0; p < plan_.pipelines.size(); ++p) {
      if (at(pipeline_for_[p]) != p) continue;
      first[p] = flat;
      flat += static_cast<std::int32_t>(plan_.pipelines[p].stages.size());
      const auto lanes = static_cast<std::int64_t>(lanes_[p].classes.size());
      kept_rows.push_back(rows_[p] / lanes * static_cast<std::int64_t>(lanes_[p].kept.size()));
      out_.batch += kept_rows.back();
      out_.plan.pipelines.push_back(kept(p, rank));
    }
    for (std::size_t i = 0; i < kept_rows.size(); ++i) {
      out_.plan.pipelines[i].share = static_cast<double>(kept_rows[i]) / static_cast<double>(out_.batch);
    }
    for (std::size_t p = 0; p < plan_.pipelines.size(); ++p) {
      for (std::size_t s = 0; s < plan_.pipelines[p].stages.size(); ++s) {
        out_.stage_of.push_back(first[at(pipeline_for_[p])] + static_cast<std::int32_t>(s));
      }
    }
  }

  Pipeline kept(std::size_t p, const std::vector<int>& rank) const {
    Pipeline pipeline = plan_.pipelines[p];
    const std::size_t count = lanes_[p].classes.size();
    for (Stage& stage : pipeline.stages) {
      std::vector<int> ranks;
      for (const int lane : lanes_[p].kept) {
        for (const int d : devices(stage, at(lane), count)) ranks.push_back(rank[at(d)]);
      }
      if (ranks.size() < stage.devices.size()) {
        const std::size_t left = ranks.size() / at(stage.tensor_parallel);
        stage.shares.assign(left, 1.0 / static_cast<double>(left));
      }
      stage.devices = std::move(ranks);
    }
    return pipeline;
  }

  const Plan& plan_;
  const cluster::Cluster& cluster_;
  const sim::SimCosts& costs_;
  plan::PlanCuts cuts_;
  std::vector<double> slowness_;    // by device
  std::vector<std::int64_t> rows_;  // by pipeline
  Numbers lane_numbers_;
  std::vector<Lanes> lanes_;
  std::vector<int> pipeline_for_;  // the one that stands for it
  FoldedPlan out_;
};

}  // namespace

FoldedPlan unfolded(const Plan& plan, std::int64_t batch) {
  FoldedPlan out;
  out.plan = plan;
  out.batch = batch;
  int last = -1;
  std::int32_t flat = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      out.stage_of.push_back(flat++);
      last = std::max(last, *std::max_element(stage.devices.begin(), stage.devices.end()));
    }
  }
  for (int d = 0; d <= last; ++d) {
    out.device_of.push_back(d);
    out.rank_of.push_back(d);
    out.stands_for.push_back({d});
  }
  return out;
}

FoldedPlan fold_plan(const Plan& plan, const Graph& graph, std::int64_t batch, const cluster::Cluster& cluster,
                     const sim::SimCosts& costs, const sim::Options& options,
                     std::span<const sim::Straggler> stragglers) {
  const bool differ = options.noise.shape != sim::Shape::none && options.noise.spread > 0;
  const schedules::Entry& entry = schedules::by_name(plan.schedule);
  const bool fitted = (entry.capabilities & schedules::kFitsCosts) != 0;
  std::vector<bool> used(at(cluster.size()), false);
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      for (const int device : stage.devices) used[at(device)] = true;
      if (stage.tensor_parallel > 1) return unfolded(plan, batch);  // lanes are of whole replicas
    }
  }
  const bool idle = std::find(used.begin(), used.end(), false) != used.end();
  const bool mixed = entry.placement == schedules::Placement::both_ways;
  if (differ || fitted || mixed || idle || options.contention == sim::Contention::dynamic) return unfolded(plan, batch);
  return PlanFolder(plan, graph, batch, cluster, costs, stragglers).fold();
}

sim::SimCosts folded_costs(const sim::SimCosts& costs, const FoldedPlan& folded) {
  if (!folded.folds()) return costs;
  sim::SimCosts out = costs;
  out.compute = [&](const sim::Piece& piece) {
    sim::Piece there = piece;
    there.rank = folded.device_of[at(piece.rank)];
    return costs.compute(there);
  };
  out.transfer = [&](Bytes bytes, int from, int to) {
    return costs.transfer(bytes, folded.device_of[at(from)], folded.device_of[at(to)]);
  };
  // Many ranks ask for the same sums.
  using Asked = std::tuple<InstructionKind, std::int64_t, std::vector<int>>;
  const auto known = std::make_shared<std::map<Asked, Seconds>>();
  const auto over_all = [&, known](InstructionKind kind, Bytes bytes, std::span<const int> ranks, bool gradients) {
    const auto [found, is_new] = known->try_emplace({kind, bytes.value(), {ranks.begin(), ranks.end()}}, Seconds(0));
    if (is_new) {
      std::vector<int> devices;
      for (const int r : ranks) {
        const std::vector<int>& its = folded.stands_for[at(r)];
        devices.insert(devices.end(), its.begin(), its.end());
      }
      std::sort(devices.begin(), devices.end());
      found->second =
          gradients && costs.reduction ? costs.reduction(bytes, devices) : costs.collective(kind, bytes, devices);
    }
    return found->second;
  };
  out.collective = [&, over_all](InstructionKind kind, Bytes bytes, std::span<const int> ranks) {
    if (ranks.size() == folded.device_of.size()) return over_all(kind, bytes, ranks, false);  // the norm
    std::vector<int> devices;
    for (const int r : ranks) devices.push_back(folded.device_of[at(r)]);
    return costs.collective(kind, bytes, devices);
  };
  out.reduction = [over_all](Bytes bytes, std::span<const int> ranks) {
    return over_all(InstructionKind::reduce_gradients, bytes, ranks, true);
  };
  out.update = [&](Bytes bytes, int rank) { return costs.update(bytes, folded.device_of[at(rank)]); };
  out.copy = [&](Bytes bytes, int rank) { return costs.copy(bytes, folded.device_of[at(rank)]); };
  return out;
}

std::vector<sim::Straggler> folded_stragglers(std::span<const sim::Straggler> stragglers, const FoldedPlan& folded) {
  std::vector<sim::Straggler> out;
  for (const sim::Straggler& one : stragglers) {
    const int rank = folded.rank_of.at(at(one.rank));
    if (folded.device_of[at(rank)] == one.rank) out.push_back({rank, one.factor});
  }
  return out;
}

sim::Simulation unfold(sim::Simulation run, const FoldedPlan& folded) {
  if (!folded.folds()) return run;
  const auto spread = [&](auto& list) {
    auto all = list;
    all.clear();
    for (const int rank : folded.rank_of) all.push_back(list[at(rank)]);
    list = std::move(all);
  };
  spread(run.busy);
  spread(run.idle);
  spread(run.peak_live_micro_batches);
  spread(run.exposed);
  spread(run.transfer);
  const double idle = std::accumulate(run.idle.begin(), run.idle.end(), Seconds(0)).value();
  const double capacity = run.iteration_time.value() * static_cast<double>(run.idle.size());
  run.bubble_fraction = capacity > 0 ? idle / capacity : 0.0;
  return run;
}

ProgramMemory unfold(const ProgramMemory& memory, const FoldedPlan& folded) {
  ProgramMemory all;
  for (const int rank : folded.rank_of) all.ranks.push_back(memory.ranks[at(rank)]);
  for (const std::int32_t stage : folded.stage_of) {
    all.stages.push_back(memory.stages[at(stage)]);
    all.live_micro_batches.push_back(memory.live_micro_batches[at(stage)]);
  }
  return all;
}

}  // namespace millrace::planner
