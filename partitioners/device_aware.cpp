// For each number of groups: deals devices, forms teams, cuts each group, deals the batch by what the cuts get through.
#include "partitioners/device_aware.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "partitioners/common/groups.h"
#include "partitioners/common/groups_cut.h"

namespace millrace::partitioners {
namespace {

constexpr int kMostGroupsTried = 16;  // beyond that, those that divide the devices

using Clock = std::chrono::steady_clock;

class Search {
 public:
  Search(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate)
      : problem_(problem),
        evaluate_(evaluate),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(options.duration("time_limit").value()))),
        speeds_(plan::device_speeds(problem)),
        order_(topological_order(*problem.graph, TieBreak::depth_first)) {}

  plan::PlanSet run() {
    for (const int groups : group_counts()) {
      if (allowed(groups)) solve(groups);
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
    } else if (late()) {
      refuse(groups, plan::Refusal::time_limit, "");
    } else {
      return true;
    }
    return false;
  }

  void solve(int groups) {
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
    for (const int stages : stage_counts) {
      if (late() && best_) break;
      const std::vector<Teams> teams = teams_of(dealt, stages);
      consider(teams, 1);
      if (problem_.micro_batches > 1) consider(teams, problem_.micro_batches);
    }
    if (!best_) consider_what_does_not_fit(dealt, stage_counts);
    if (!best_) return refuse(groups, plan::Refusal::memory_exceeded, "no cut fits, whatever the parts of the batch");
    if (late()) best_->report.stopped_by = "time";
    plans_.add(std::move(*best_));
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

  std::vector<Teams> teams_of(const std::vector<std::vector<int>>& dealt, int stages) const {
    std::vector<Teams> teams;
    for (const std::vector<int>& group : dealt) teams.push_back(make_teams(group, stages));
    return teams;
  }

  // Where nothing fits: the plan that needs least, which says how much that is.
  void consider_what_does_not_fit(const std::vector<std::vector<int>>& dealt, const std::vector<int>& stage_counts) {
    CapacityCutter cutter(problem_, order_, std::nullopt);
    for (const int stages : stage_counts) {
      std::optional<Plan> plan = make_plan(teams_of(dealt, stages), 1, cutter);
      if (!plan) continue;
      plan::Candidate candidate = judged(std::move(*plan));
      if (!best_ || candidate.report.peak_memory_bytes < best_->report.peak_memory_bytes) best_ = std::move(candidate);
    }
  }

  plan::Candidate judged(Plan plan) const {
    plan::Candidate candidate{std::move(plan), {}};
    candidate.report = evaluate_.evaluate(candidate.plan);
    candidate.report.partitioner = "device_aware";
    candidate.report.order = "topological";
    return candidate;
  }

  // Makes the plan, and again with more room where the evaluator finds it too large: a device may report more bytes
  // than are counted. `unit`: rows that a group's part is a multiple of.
  void consider(const std::vector<Teams>& teams, std::int64_t unit) {
    constexpr int kTries = 4;
    std::int64_t margin = 0;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      CapacityCutter cutter(problem_, order_, margin);
      std::optional<Plan> plan = make_plan(teams, unit, cutter);
      if (!plan) return;
      plan::Candidate candidate = judged(std::move(*plan));
      const bool fits = candidate.report.feasible;
      if (!fits) margin += excess(candidate.report);
      if (!best_ || plan::better(problem_.objective, candidate, *best_)) best_ = std::move(candidate);
      if (fits) return;
    }
  }

  // Parts of the batch follow the speeds first, then what the cuts for those parts get through.
  std::optional<Plan> make_plan(const std::vector<Teams>& teams, std::int64_t unit, CapacityCutter& cutter) {
    constexpr int kRounds = 3;
    std::vector<double> weights;
    for (const Teams& group : teams) {
      double speed = 0;
      for (const Team& team : group) {
        for (const int device : team.devices) speed += speeds_[static_cast<std::size_t>(device)];
      }
      weights.push_back(speed);
    }
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
    return assemble(teams, rows, cuts);
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
                const std::vector<CapacityCut>& cuts) const {
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
        std::vector<OpId> ops(order_.begin() + static_cast<std::ptrdiff_t>(begin),
                              order_.begin() + static_cast<std::ptrdiff_t>(cuts[group].ends[s]));
        std::sort(ops.begin(), ops.end());
        stage.ops = std::move(ops);
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
  Order order_;
  plan::PlanSet plans_;
  std::optional<plan::Candidate> best_;  // of the number of groups at hand
};

}  // namespace

config::Options device_aware_options() {
  return {{"time_limit", "stop after this long and return the best so far", config::Duration{}, "10 s"}};
}

plan::PlanSet device_aware(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  if (problem.objective > plan::Objective::communication) {
    plan::PlanSet plans;
    plans.refuse(problem.pipelines.value_or(0), problem.stages.value_or(0), plan::Refusal::not_offered,
                 fmt::format("no search for objective {}", plan::name(problem.objective)));
    return plans;
  }
  return Search(problem, options, evaluate).run();
}

}  // namespace millrace::partitioners
