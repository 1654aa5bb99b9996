// Goes through shapes; a skeleton plan without operators tells where the schedule wants each stage.
#include "planner/virtual_stages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "plan/fit.h"
#include "plan/shapes.h"
#include "planner/schedule_rules.h"
#include "planner/virtual_cluster.h"
#include "schedules/placement.h"

namespace millrace::planner {
namespace {

using schedules::Placement;

struct DealtShape {
  int pipelines = 1;
  int devices = 1;  // of a pipeline
  int places = 1;
  int stages = 1;
  int replicas() const { return devices / places; }
};

bool limited(const plan::Problem& problem) {
  for (int device = 0; device < problem.cluster->size(); ++device) {
    if (problem.memory_of(device)) return true;
  }
  return false;
}

class Dealing {
 public:
  Dealing(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate, const CutStages& cut)
      : problem_(problem),
        schedule_(schedules::by_name(problem.schedule)),
        each_(stages_of_place(schedule_, options)),
        evaluate_(evaluate),
        cut_(cut),
        speeds_(plan::device_speeds(problem)) {}

  plan::PlanSet run() {
    std::vector<std::pair<DealtShape, Plan>> skeletons;
    for (const DealtShape& shape : shapes()) {
      if (auto skeleton = skeleton_of(shape)) skeletons.emplace_back(shape, std::move(*skeleton));
    }
    left_ = skeletons.size();
    for (const auto& [shape, skeleton] : skeletons) {
      try_shape(shape, skeleton);
      --left_;
    }
    return std::move(plans_);
  }

 private:
  std::vector<DealtShape> shapes() {
    std::vector<DealtShape> shapes;
    for (const plan::Shape& of : plan::allowed_pipelines(problem_, plans_)) {
      for (const int places : place_counts(of)) {
        const DealtShape shape{of.pipelines, of.devices, places, places * each_};
        if (shape.stages > problem_.graph->size()) {
          plans_.refuse(shape.pipelines, shape.stages, plan::Refusal::more_stages_than_operators,
                        fmt::format("{} on each of {} places are {} stages of {} operators", each_, places,
                                    shape.stages, problem_.graph->size()));
        } else {
          shapes.push_back(shape);
        }
      }
    }
    return shapes;
  }

  // One place is no pipeline: it is tried where there is nothing else, or where it is asked for.
  std::vector<int> place_counts(const plan::Shape& of) {
    std::vector<int> counts;
    if (problem_.stages) {
      const int stages = *problem_.stages;
      if (stages % each_ != 0) {
        plans_.refuse(
            of.pipelines, stages, plan::Refusal::not_offered,
            fmt::format("schedule {} puts {} stages on each place; {} are no multiple", schedule_.name, each_, stages));
      } else if (stages / each_ > of.devices || of.devices % (stages / each_) != 0) {
        plans_.refuse(of.pipelines, stages, plan::Refusal::more_stages_than_devices,
                      fmt::format("schedule {} puts {} stages on {} places, which {} devices of a pipeline are not",
                                  schedule_.name, stages, stages / each_, of.devices));
      } else {
        counts.push_back(stages / each_);
      }
      return counts;
    }
    for (int places = of.devices == 1 ? 1 : 2; places <= of.devices; ++places) {
      if (of.devices % places == 0) counts.push_back(places);
    }
    return counts;
  }

  std::vector<schedules::Seat> seats(const DealtShape& shape, int pipeline) const {
    std::vector<schedules::Seat> seats;
    int device = pipeline * shape.devices;
    for (int place = 0; place < shape.places; ++place) {
      schedules::Seat& seat = seats.emplace_back();
      double sum = 0;
      for (int r = 0; r < shape.replicas(); ++r, ++device) {
        seat.devices.push_back(device);
        seat.shares.push_back(speeds_[static_cast<std::size_t>(device)]);
        sum += seat.shares.back();
      }
      for (double& share : seat.shares) share /= sum;
    }
    return seats;
  }

  // `stages` of each pipeline, dealt.
  Plan dealt(const DealtShape& shape, Plan plan) const {
    const std::vector<Pipeline> cut = std::exchange(plan.pipelines, {});
    plan.schedule = problem_.schedule;
    plan.bucket_size = problem_.bucket_size;
    if (schedule_.placement == Placement::in_turn) plan.schedule_options["chunks"] = fmt::format("{}", each_);
    for (int p = 0; p < shape.pipelines; ++p) {
      Pipeline pipeline = cut[static_cast<std::size_t>(p)];
      pipeline.share = 1.0 / shape.pipelines;
      pipeline.micro_batches = problem_.micro_batches;
      for (Pipeline& part : schedules::place(pipeline, seats(shape, p), schedule_.placement)) {
        plan.pipelines.push_back(std::move(part));
      }
    }
    return plan;
  }

  // No operators yet: what the schedule says to the numbers.
  std::optional<Plan> skeleton_of(const DealtShape& shape) {
    Plan empty;
    Pipeline pipeline;
    pipeline.stages.resize(static_cast<std::size_t>(shape.stages));
    empty.pipelines.assign(static_cast<std::size_t>(shape.pipelines), pipeline);
    std::string rule;
    try {
      Plan skeleton = dealt(shape, std::move(empty));
      rule = broken_rule(skeleton);
      if (rule.empty()) return skeleton;
    } catch (const InvalidInput& refusal) {
      rule = refusal.what();
    }
    plans_.refuse(shape.pipelines, shape.stages, plan::Refusal::not_offered, rule);
    return std::nullopt;
  }

  void try_shape(const DealtShape& shape, const Plan& skeleton) {
    const bool tight = limited(problem_);
    // Ranks that search together make the same calls, whatever each of them finds.
    const bool both = tight && problem_.exchange != nullptr;
    std::vector<plan::Candidate> found = cuts(shape, skeleton, 0, tight ? 0.5 : 1.0);
    const bool fits = std::any_of(found.begin(), found.end(), [](const auto& c) { return c.report.feasible; });
    if (both || (tight && !fits)) {
      for (plan::Candidate& candidate : cuts(shape, skeleton, stages_held(skeleton), 0.5)) {
        found.push_back(std::move(candidate));
      }
    }
    const bool any = std::any_of(found.begin(), found.end(), [](const auto& c) { return c.report.feasible; });
    for (plan::Candidate& candidate : found) {
      if (!any || candidate.report.feasible) plans_.add(std::move(candidate));
    }
  }

  // Stages of all pipelines on a device.
  int stages_held(const Plan& skeleton) const {
    const int first = skeleton.pipelines.front().stages.front().devices.front();
    int held = 0;
    for (const Pipeline& pipeline : skeleton.pipelines) {
      for (const Stage& stage : pipeline.stages) held += stage.devices.front() == first ? 1 : 0;
    }
    return held;
  }

  // Replicas of a place cut as one device that has the rows of one of them.
  std::vector<plan::Candidate> cuts(const DealtShape& shape, const Plan& skeleton, int memory_part, double part) {
    std::vector<int> device_of;
    const auto directions = skeleton.pipelines.size() / static_cast<std::size_t>(shape.pipelines);
    for (int p = 0; p < shape.pipelines; ++p) {
      for (const Stage& stage : skeleton.pipelines[static_cast<std::size_t>(p) * directions].stages) {
        device_of.push_back(stage.devices.front());
      }
    }
    const VirtualCost cost(*problem_.cost, device_of);
    const cluster::Cluster cluster = virtual_cluster(problem_, device_of, memory_part);
    plan::Problem virtual_problem = problem_;
    virtual_problem.cost = &cost;
    virtual_problem.cluster = &cluster;
    virtual_problem.memory_limit.reset();
    virtual_problem.pipelines = shape.pipelines;
    virtual_problem.stages = shape.stages;
    virtual_problem.batch =
        std::max((problem_.batch + shape.replicas() - 1) / shape.replicas(), shape.pipelines * problem_.micro_batches);
    plan::PlanSet set = cut_(virtual_problem, part / static_cast<double>(left_));
    for (plan::Refused& refused : set.refusals()) plans_.refusals().push_back(std::move(refused));
    const auto other = [&](const plan::Candidate& candidate) { return !has_shape(candidate.plan, shape); };
    if (std::any_of(set.candidates().begin(), set.candidates().end(), other)) {
      plans_.refuse(shape.pipelines, shape.stages, plan::Refusal::not_offered,
                    "its plans have other numbers of pipelines or stages");
    }
    std::vector<plan::Candidate> made;
    for (const plan::Candidate& candidate : set.candidates()) {
      if (other(candidate)) continue;
      plan::Candidate folded = plan::fitted(problem_, evaluate_, dealt(shape, candidate.plan));
      folded.report.partitioner = candidate.report.partitioner;
      folded.report.order = candidate.report.order;
      folded.report.stopped_by = candidate.report.stopped_by;
      made.push_back(std::move(folded));
    }
    return made;
  }

  static bool has_shape(const Plan& plan, const DealtShape& shape) {
    return static_cast<int>(plan.pipelines.size()) == shape.pipelines &&
           std::all_of(plan.pipelines.begin(), plan.pipelines.end(), [&](const Pipeline& pipeline) {
             return static_cast<int>(pipeline.stages.size()) == shape.stages;
           });
  }

  const plan::Problem& problem_;
  const schedules::Entry& schedule_;
  int each_;
  plan::Evaluator& evaluate_;
  const CutStages& cut_;
  std::vector<double> speeds_;
  std::size_t left_ = 1;  // shapes that are not cut yet
  plan::PlanSet plans_;
};

}  // namespace

bool deals_stages(const schedules::Entry& schedule) { return schedule.placement != Placement::one_stage; }

int stages_of_place(const schedules::Entry& schedule, const config::Values& options) {
  switch (schedule.placement) {
    case Placement::in_turn:
      return options.has("chunks") ? static_cast<int>(options.integer("chunks")) : 2;
    case Placement::vee:
      return 2;
    default:
      return 1;
  }
}

plan::PlanSet virtual_stage_plans(const plan::Problem& problem, const config::Values& schedule_options,
                                  plan::Evaluator& evaluate, const CutStages& cut) {
  return Dealing(problem, schedule_options, evaluate, cut).run();
}

}  // namespace millrace::planner
