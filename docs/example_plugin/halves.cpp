// A stage for each device, the number of operators split as evenly as halving allows.
#include "halves.h"

#include <vector>

#include "plan/assignment.h"

namespace example {
namespace {

using millrace::OpId;
using millrace::plan::StageCut;

void split(OpId begin, OpId end, int devices, std::vector<StageCut>& stages) {
  if (devices == 1) {
    StageCut stage;
    for (OpId op = begin; op < end; ++op) stage.ops.push_back(op);
    stage.replicas = 1;
    stages.push_back(stage);
    return;
  }
  const OpId middle = begin + (end - begin) * (devices / 2) / devices;
  split(begin, middle, devices / 2, stages);
  split(middle, end, devices - devices / 2, stages);
}

}  // namespace

millrace::plan::PlanSet halves(const millrace::plan::Problem& problem, const millrace::config::Values&,
                               millrace::plan::Evaluator& evaluate) {
  millrace::plan::PlanSet plans;
  const int devices = problem.cluster->size();
  if (problem.graph->size() < devices) {
    plans.refuse(1, devices, millrace::plan::Refusal::more_stages_than_operators);
    return plans;
  }
  std::vector<StageCut> stages;
  split(0, static_cast<OpId>(problem.graph->size()), devices, stages);
  millrace::plan::Candidate candidate;
  candidate.plan = millrace::plan::assign(problem, 1, stages, millrace::plan::Shares::equal);
  candidate.report = evaluate.evaluate(candidate.plan);
  candidate.report.partitioner = "halves";
  plans.add(candidate);
  return plans;
}

}  // namespace example
