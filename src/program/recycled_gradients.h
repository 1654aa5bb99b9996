// Gradients that lie in each other's place: buckets that are updated within the backward that makes them.
#pragma once

#include "graph/gradient_places.h"
#include "program/program.h"

namespace millrace {

/// Where the gradients of `stage` (index in Program::stages) lie. A bucket to which each of its ranks contributes with
/// one backward, and whose update is attached to that, needs its place from its last operator to the one that the
/// update waits for; others need theirs always. Of some only factors are kept (Bucket::factor_rows). What forwards
/// deposit in buffers waits beside the buckets. \pre the stage is not tensor-parallel.
GradientPlaces recycled_gradients(const Graph& graph, const Program& program, std::int32_t stage);

/// What its gradients take, in proportion to one place for each (ProgramStage::gradient_share).
double gradient_share(const Graph& graph, const Program& program, std::int32_t stage);

}  // namespace millrace
