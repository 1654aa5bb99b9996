// The last stage alternates while those before it run as gpipe: its activations live for one micro-batch only.
#include "schedules/hippie.h"

#include "schedules/common/alternate.h"
#include "schedules/common/plan_rules.h"

namespace millrace::schedules {

config::Options hippie_options() {
  return {
      {"base", "which order the stages before the last follow", config::OneOf{{"last_stage", "1f1b"}}, "last_stage"}};
}

ComputeOrder hippie(const Plan& plan, const StageDag& dag, const StageCosts&, const config::Values& options) {
  if (options.text("base") == "1f1b") return alternate(plan, dag, "hippie");
  require_one_stage_a_device(plan, "hippie");
  require_no_warmup(plan, "hippie with base last_stage");
  ComputeOrder order(plan);
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
      ComputeOrder::Lane lane = order.lane({p, s});
      const bool last = dag.depth_from_end[static_cast<std::size_t>(flat_index(plan, {p, s}))] == 0;
      for (std::int64_t k = 0; k < pipeline.micro_batches; ++k) {
        lane.forward(k);
        if (last) lane.backward(k);
      }
      for (std::int64_t k = 0; !last && k < pipeline.micro_batches; ++k) lane.backward(k);
    }
  }
  return order;
}

}  // namespace millrace::schedules
