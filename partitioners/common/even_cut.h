// Among cuts of the same score, the one whose stages take more nearly the same time.
#pragma once

#include "partitioners/common/pipeline_cut.h"

namespace millrace::partitioners {

/// Moves single items from stage to stage as long as the score stays and the stages' times come nearer to each
/// other; the cut is changed only where the difference between its slowest and its fastest stage gets smaller, which is
/// the first tie-break of plan::better(). Every stage keeps its devices, and at least one item. A local search: not
/// always the most even cut. \pre assess() accepts the cut.
void even_out(PipelineModel& model, plan::Objective objective, PipelineCut& cut);

}  // namespace millrace::partitioners
