// Which implementations the kernels of a job use: chosen by rank 0, and kept for this machine.
#pragma once

#include <memory>

#include "app/session.h"
#include "kernels/variants.h"
#include "runtime/forecast.h"

namespace millrace::app {

/// Those that are kept for this processor and so many threads.
std::shared_ptr<kernels::Variants> kept_variants(int threads);

/// All ranks choose as rank 0 does, which measures what of the programs it does not know.
void agree_on_variants(const Session& session, const runtime::Programs& programs, const comm::World& world);

}  // namespace millrace::app
