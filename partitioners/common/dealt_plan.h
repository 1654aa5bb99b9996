// From a cut and a deal of devices to a plan.
#pragma once

#include <span>
#include <string>

#include "partitioners/common/device_deal.h"
#include "partitioners/common/pipeline_cut.h"
#include "partitioners/common/topological_order.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// Equal pipelines of the stages of `cut`, whose ends are positions in the order; replicas share rows by speed.
/// `digest`: the graph's. \pre the cut uses all devices of the deal.
Plan dealt_plan(const plan::Problem& problem, const std::string& digest, const Order& order, const DeviceDeal& deal,
                const PipelineCut& cut, std::span<const double> speeds);

}  // namespace millrace::partitioners
