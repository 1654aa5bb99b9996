// Annotations that cut the batch: the devices of `plan.tensor_parallel` become replicas of their stage.
#pragma once

#include <vector>

#include "app/session.h"
#include "plan/plan.h"

namespace millrace::app {

/// Weights of the parts of the batch, one for each of `plan.tensor_parallel` devices; empty where annotations cut other
/// dimensions. Parameters are whole on every device then, and each computes all operators on its rows: what replicas of
/// a stage are, with their buckets and their overlap.
/// \throws InvalidInput  faults of annotations; annotations that cut the batch of some operators and not of others.
std::vector<double> batch_weights(const Session& session);

/// A plan for groups of devices (app/tensor_parallel.h) becomes one whose groups are replicas with such shares.
void spread_batch(Plan& plan, const std::vector<double>& weights);

}  // namespace millrace::app
