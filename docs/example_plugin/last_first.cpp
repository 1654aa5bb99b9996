// The order of gpipe with its backwards turned round.
#include "last_first.h"

namespace example {

millrace::ComputeOrder last_first(const millrace::Plan& plan, const millrace::StageDag&, const millrace::StageCosts&,
                                  const millrace::config::Values&) {
  millrace::ComputeOrder order(plan);
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const millrace::Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
      millrace::ComputeOrder::Lane lane = order.lane({p, s});
      for (std::int64_t k = 0; k < pipeline.micro_batches; ++k) lane.forward(k);
      for (std::int64_t k = pipeline.micro_batches; k-- > 0;) lane.backward(k);
    }
  }
  return order;
}

}  // namespace example
