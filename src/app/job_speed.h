// Measures the ranks of a job and the links between them, as the job starts.
#pragma once

#include <memory>

#include "app/session.h"
#include "comm/mpi/world.h"
#include "cost/profile.h"
#include "kernels/device.h"

namespace millrace::app {

/// Threads of this rank's kernels.
int threads_of(const Session& session);

/// The device that training uses, with its threads.
std::unique_ptr<kernels::Device> device_for_measuring(const Session& session);

/// Speeds relative to rank 0, `slowdown` left out, links and sums; the same on all ranks. Takes some 100 ms.
/// \pre the cluster's devices are the ranks. Collective.
cost::MeasuredJob measure_job(const Session& session, const comm::World& world);

}  // namespace millrace::app
