// For each number of groups: deals devices, forms teams, cuts each group, deals the batch by what the cuts get through.
#include "partitioners/device_aware.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "partitioners/common/cluster_order.h"
#include "partitioners/common/first_plan.h"
#include "partitioners/common/groups.h"
#include "partitioners/common/groups_cut.h"
#include "partitioners/common/offered.h"
#include "plan/fit.h"

namespace millrace::partitioners {
namespace {

constexpr int kMostGroupsTried = 16;  // beyond that, those that divide the devices

using Clock = std::chrono::steady_clock;

struct NamedOrder {
  std::string name;
  Order order;
};

// Those that `dp` cuts, and the graph's own.
std::vector<NamedOrder> all_orders(const plan::Problem& problem) {
  constexpr double kPartOfAStage = 0.5;  // METHODS 6: τ
  const OpEdges edges = successors(*problem.graph);
  std::vector<NamedOrder> orders;
  for (Order& order : topological_orders(*problem.graph, edges)) orders.push_back({"topological", std::move(order)});
  const auto add = [&](std::string name, Order order) {
    const bool known =
        std::any_of(orders.begin(), orders.end(), [&](const NamedOrder& other) { return other.order == order; });
    if (!known) orders.push_back({std::move(name), std::move(order)});
  };
  Order canonical(static_cast<std::size_t>(problem.graph->size()));
  std::iota(canonical.begin(), canonical.end(), 0);
  add("topological", std::move(canonical));
  std::vector<double> times;
  for (OpId op = 0; op < problem.graph->size(); ++op) {
    times.push_back(problem.cost->op_time(op, problem.micro_batch_rows(1), 0).total().value());
  }
  const double total = std::accumulate(times.begin(), times.end(), 0.0);
  const int stages = problem.stages.value_or(problem.cluster->size());
  add("cluster", cluster_order(*problem.graph, edges, times, kPartOfAStage * total / stages).order);
  return orders;
}

class GroupSearch {
 public:
  GroupSearch(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate)
      : problem_(problem),
        evaluate_(evaluate),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(options.duration("time_limit").value()))),
        speeds_(plan::device_speeds(problem)),
        orders_(all_orders(problem)) {
    for (OpId op = 0; op < problem.graph->size(); ++op) {
      times_.push_back(problem.cost->op_time(op, problem.micro_batch_rows(1), 0).total().value());
    }
  }

  plan::PlanSet run() {
    const std::vector<int> counts = group_counts();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (!allowed(counts[i])) continue;
      const Clock::time_point now = Clock::now();
      solve(counts[i], now + (deadline_ - now) / static_cast<int>(counts.size() - i));
    }
    return std::move(plans_);
  }

 private:
  using Teams = std::vector<Team>;  // of a group, by stage

  int devices() const { return problem_.cluster->size(); }
  bool late() const { return Clock::now() > deadline_; }

  std::vector<int> group_counts() const {
    if (problem_.pipelines) return {*problem_.pipelines};
    if (devices() > kMostGroupsTried) return problem_.pipeline_counts();
    std::vector<int> counts(static_cast<std::size_t>(devices()));
    std::iota(counts.begin(), counts.end(), 1);
    return counts;
  }

  void refuse(int groups, plan::Refusal reason, std::string detail) {
    plans_.refuse(groups, problem_.stages.value_or(0), reason, std::move(detail));
  }

  bool allowed(int groups) {
    const int stages = problem_.stages.value_or(1);
    if (groups > devices()) {
      refuse(groups, plan::Refusal::pipelines_do_not_divide_devices,
             fmt::format("{} devices, {} pipelines", devices(), groups));
    } else if (problem_.batch < groups * problem_.micro_batches) {
      refuse(groups, plan::Refusal::batch_too_small,
             fmt::format("a batch of {} for {} pipelines × {} micro-batches", problem_.batch, groups,
                         problem_.micro_batches));
    } else if (groups * stages > devices()) {
      refuse(groups, plan::Refusal::more_stages_than_devices,
             fmt::format("{} pipelines of {} stages on {} devices", groups, stages, devices()));
    } else if (stages > problem_.graph->size()) {
      refuse(groups, plan::Refusal::more_stages_than_operators,
             fmt::format("{} stages of {} operators", stages, problem_.graph->size()));
    } else if (late() && plans_.feasible()) {
      refuse(groups, plan::Refusal::time_limit, "");
    } else {
      return true;
    }
    return false;
  }

  // A way to cut: teams of each group, an order, and whether all operators are recomputed.
  struct Way {
    std::vector<Teams> teams;
    const NamedOrder* order = nullptr;
    bool recompute = false;
    plan::Candidate first{};  // equal cuts
  };

  // Equal cuts of every order and number of stages first; the cutter then goes through them from the best on.
  void solve(int groups, Clock::time_point end) {
    best_.reset();
    std::vector<std::vector<int>> dealt = deal_devices(speeds_, groups, problem_.stages.value_or(1));
    std::size_t most = 1;
    for (std::vector<int>& group : dealt) {
      order_by_memory(group);
      most = std::max(most, group.size());
    }
    std::vector<int> stage_counts;
    if (problem_.stages) {
      stage_counts = {*problem_.stages};
    } else {
      stage_counts = {static_cast<int>(most)};
      for (int stages = 1; stages < static_cast<int>(most); stages *= 2) stage_counts.push_back(stages);
    }
    std::vector<Way> ways;
    const Clock::time_point half = Clock::now() + (end - Clock::now()) / 2;
    for (const NamedOrder& order : orders_) {
      for (const int stages : stage_counts) {
        if (!ways.empty() && Clock::now() > half && (best_->report.feasible || late())) continue;
        std::vector<Teams> teams;
        for (const std::vector<int>& group : dealt) teams.push_back(make_teams(group, stages));
        if (auto plan = equal_plan(teams, order.order)) {
          plan::Candidate first = judged(std::move(*plan), order);
          keep(first);
          ways.push_back({std::move(teams), &order, problem_.recompute == plan::Recompute::all, std::move(first)});
        }
      }
    }
    std::stable_sort(ways.begin(), ways.end(),
                     [&](const Way& a, const Way& b) { return plan::better(problem_.objective, a.first, b.first); });
    cut_ways(ways, end);
    // Where nothing fits with its activations kept, cuts are looked for that fit without.
    if (problem_.recompute == plan::Recompute::automatic && !(best_ && best_->report.feasible)) {
      for (Way& way : ways) way.recompute = true;
      cut_ways(ways, end);
    }
    const bool fits = best_ && best_->report.feasible;
    if (late() && !fits) return refuse(groups, plan::Refusal::time_limit, "");
    if (!best_) return refuse(groups, plan::Refusal::memory_exceeded, "no cut fits, whatever the parts of the batch");
    if (Clock::now() > end) best_->report.stopped_by = "time";
    plans_.add(std::move(*best_));
  }

  void cut_ways(const std::vector<Way>& ways, Clock::time_point end) {
    for (const Way& way : ways) {
      for (const std::int64_t unit : {std::int64_t{1}, problem_.micro_batches}) {
        if (Clock::now() > end && (late() || best_->report.feasible)) return;
        consider(way, unit);
        if (problem_.micro_batches == 1) break;
      }
    }
  }

  // Of plans that do not fit the one that needs least, which says how much that is (REPORTS M02).
  void keep(const plan::Candidate& candidate) {
    const bool neither = best_ && !candidate.report.feasible && !best_->report.feasible;
    const bool better = !best_ || (neither ? candidate.report.peak_memory_bytes < best_->report.peak_memory_bytes
                                           : plan::better(problem_.objective, candidate, *best_));
    if (better) best_ = candidate;
  }

  plan::Candidate judged(Plan plan, const NamedOrder& order) {
    plan::Candidate candidate = plan::fitted(problem_, evaluate_, std::move(plan));
    candidate.report.partitioner = "device_aware";
    candidate.report.order = order.name;
    return candidate;
  }

  // Equal times for equal speeds, whatever memory says; the batch dealt by speed.
  std::optional<Plan> equal_plan(const std::vector<Teams>& teams, const Order& order) {
    const std::vector<std::int64_t> caps(teams.size(), problem_.batch);
    const auto rows = deal_rows(problem_.batch, speeds_of(teams), caps, problem_.micro_batches, 1);
    if (!rows) return std::nullopt;
    std::vector<double> times;
    for (const OpId op : order) times.push_back(times_[static_cast<std::size_t>(op)]);
    std::vector<CapacityCut> cuts;
    for (const Teams& group : teams) {
      std::vector<double> parts;
      for (const Team& team : group) parts.push_back(speed_of(team));
      cuts.push_back({proportional_cuts(times, parts), 0});
    }
    return assemble(teams, *rows, cuts, order);
  }

  double speed_of(const Team& team) const {
    double speed = 0;
    for (const int device : team.devices) speed += speeds_[static_cast<std::size_t>(device)];
    return speed;
  }

  std::vector<double> speeds_of(const std::vector<Teams>& teams) const {
    std::vector<double> speeds;
    for (const Teams& group : teams) {
      speeds.push_back(0);
      for (const Team& team : group) speeds.back() += speed_of(team);
    }
    return speeds;
  }

  // Early stages keep the most micro-batches alive: they go to the devices that hold most.
  void order_by_memory(std::vector<int>& group) const {
    std::stable_sort(group.begin(), group.end(), [&](int a, int b) {
      const auto of = [&](int device) { return problem_.memory_of(device); };
      return of(a) && of(b) ? *of(a) > *of(b) : !of(a) && of(b).has_value();
    });
  }

  // Runs of a group's devices with about equal sums of speeds, at most as many as there are operators.
  Teams make_teams(const std::vector<int>& group, int stages) const {
    std::vector<double> speeds;
    for (const int device : group) speeds.push_back(speeds_[static_cast<std::size_t>(device)]);
    const auto most = std::min<std::int64_t>(static_cast<std::int64_t>(group.size()), problem_.graph->size());
    Teams teams;
    std::size_t begin = 0;
    for (const std::size_t end : equal_cuts(speeds, static_cast<int>(std::min<std::int64_t>(stages, most)))) {
      const double sum = std::accumulate(speeds.begin() + static_cast<std::ptrdiff_t>(begin),
                                         speeds.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
      Team team;
      for (; begin < end; ++begin) {
        team.devices.push_back(group[begin]);
        team.shares.push_back(speeds[begin] / sum);
      }
      teams.push_back(std::move(team));
    }
    return teams;
  }

  // Makes the plan, and again with more room where the evaluator finds it too large: a device may report more bytes
  // than are counted. `unit`: rows that a group's part is a multiple of.
  void consider(const Way& way, std::int64_t unit) {
    constexpr int kTries = 4;
    std::int64_t margin = 0;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      CapacityCutter cutter(problem_, way.order->order, margin, way.recompute);
      std::optional<Plan> plan = make_plan(way, unit, cutter);
      if (!plan) return;
      const plan::Candidate candidate = judged(std::move(*plan), *way.order);
      keep(candidate);
      if (candidate.report.feasible) return;
      margin += excess(candidate.report);
    }
  }

  // Parts of the batch follow the speeds first, then what the cuts for those parts get through.
  std::optional<Plan> make_plan(const Way& way, std::int64_t unit, CapacityCutter& cutter) {
    constexpr int kRounds = 3;
    const std::vector<Teams>& teams = way.teams;
    std::vector<double> weights = speeds_of(teams);
    std::vector<std::int64_t> caps(teams.size(), problem_.batch), rows;
    std::vector<CapacityCut> cuts(teams.size());
    for (int round = 0; round < kRounds; ++round) {
      const auto dealt = deal_rows(problem_.batch, weights, caps, problem_.micro_batches, unit);
      if (!dealt) return std::nullopt;
      if (*dealt == rows) break;
      rows = *dealt;
      if (!cut_all(teams, rows, cutter, caps, cuts)) {
        --round;  // a cap has fallen: the others take what is over
        rows.clear();
        continue;
      }
      for (std::size_t group = 0; group < teams.size(); ++group) {
        if (cuts[group].slowest > 0) weights[group] = static_cast<double>(size(rows[group])) / cuts[group].slowest;
      }
    }
    // Stages that do not fit as they are are recomputed (plan/fit.h).
    return assemble(teams, rows, cuts, way.order->order);
  }

  std::int64_t size(std::int64_t rows) const { return (rows + problem_.micro_batches - 1) / problem_.micro_batches; }

  // False where a group cannot hold its rows; its cap is then what it can.
  bool cut_all(const std::vector<Teams>& teams, const std::vector<std::int64_t>& rows, CapacityCutter& cutter,
               std::vector<std::int64_t>& caps, std::vector<CapacityCut>& cuts) const {
    bool all = true;
    for (std::size_t group = 0; group < teams.size(); ++group) {
      if (const auto& cut = cutter.cut(teams[group], size(rows[group]))) {
        cuts[group] = *cut;
      } else {
        const std::int64_t tried = size(rows[group]);
        caps[group] = std::min(cutter.most_rows(teams[group], tried), tried - 1) * problem_.micro_batches;
        all = false;
      }
    }
    return all;
  }

  Plan assemble(const std::vector<Teams>& teams, const std::vector<std::int64_t>& rows,
                const std::vector<CapacityCut>& cuts, const Order& order) const {
    Plan plan;
    plan.model = problem_.graph->name();
    plan.graph_digest = problem_.graph->digest();
    plan.schedule = problem_.schedule;
    plan.bucket_size = problem_.bucket_size;
    for (std::size_t group = 0; group < teams.size(); ++group) {
      Pipeline pipeline;
      pipeline.share = static_cast<double>(rows[group]) / static_cast<double>(problem_.batch);
      pipeline.micro_batches = problem_.micro_batches;
      std::size_t begin = 0;
      for (std::size_t s = 0; s < teams[group].size(); ++s) {
        Stage stage;
        std::vector<OpId> ops(order.begin() + static_cast<std::ptrdiff_t>(begin),
                              order.begin() + static_cast<std::ptrdiff_t>(cuts[group].ends[s]));
        std::sort(ops.begin(), ops.end());
        stage.ops = std::move(ops);
        if (plan::recomputes_all(problem_, s, teams[group].size())) stage.recompute = stage.ops;
        stage.devices = teams[group][s].devices;
        stage.shares = teams[group][s].shares;
        pipeline.stages.push_back(std::move(stage));
        begin = cuts[group].ends[s];
      }
      plan.pipelines.push_back(std::move(pipeline));
    }
    return plan;
  }

  std::int64_t excess(const plan::PlanReport& report) const {
    std::int64_t most = 0;
    for (const plan::StageReport& stage : report.stages) {
      for (const int device : stage.devices) {
        if (const auto limit = problem_.memory_of(device)) {
          most = std::max(most, stage.memory_bytes - limit->value());
        }
      }
    }
    return most + 1;
  }

  const plan::Problem& problem_;
  plan::Evaluator& evaluate_;
  Clock::time_point deadline_;
  std::vector<double> speeds_;
  std::vector<NamedOrder> orders_;
  std::vector<double> times_;  // of operators, on the first device
  plan::PlanSet plans_;
  std::optional<plan::Candidate> best_;  // of the number of groups at hand
};

}  // namespace

config::Options device_aware_options() {
  return {{"time_limit", "stop after this long and return the best so far", config::Duration{}, "10 s"}};
}

plan::PlanSet device_aware(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  if (auto refused = refused_if_published(problem)) return std::move(*refused);
  return with_first_plan(problem, evaluate, "device_aware", GroupSearch(problem, options, evaluate).run());
}

}  // namespace millrace::partitioners
