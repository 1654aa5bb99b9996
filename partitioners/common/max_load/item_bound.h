// A lower bound on max_load from single items: whatever device takes one has at least that to do.
#pragma once

#include <chrono>

#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

/// The largest, over the items, of the least load that a device with the item can have: on a core the item's own time,
/// on an accelerator the least of compute + transfers over all sets that hold the item, which is a minimum cut. Holds
/// for every assignment of items to devices, convex or not. Stops at `enough` (a load that is known to be reached); of
/// many items, those with the largest loads alone are tried.
double item_bound(const Model& model, double enough, std::chrono::steady_clock::time_point deadline);

}  // namespace millrace::partitioners::max_load
