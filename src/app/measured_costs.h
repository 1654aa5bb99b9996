// Measured costs of a session: a profile that was kept, or one that is measured as the command starts.
#pragma once

#include <cstdint>
#include <vector>

#include "app/arguments.h"
#include "app/session.h"
#include "comm/mpi/world.h"
#include "cost/profile.h"
#include "program/program.h"

namespace millrace::app {

/// Rows that micro-batches of the experiment can have: powers of two up to the longest, as far as one run of the
/// network takes no more than about half a second of one core.
std::vector<std::int64_t> rows_to_measure(const Session& session);

/// Measured on all ranks side by side, as they train; the operators' times are those of rank 0, the same on all ranks.
/// \param time_of_size  for the repetitions of each size.
/// \throws InvalidInput  (SharedError) a graph that cannot be trained. Collective.
cost::Profile measure_profile(const Session& session, const std::vector<std::int64_t>& rows, Seconds time_of_size,
                              const comm::World& world);

/// With `costs: measured` and a plan of several stages: measures again with the network cut as the first pipeline of
/// `program` is, in micro-batches of its sizes, so that what a border costs the operators beside it is predicted.
/// Collective.
void measure_as_cut(Session& session, const Program& program, const comm::World& world);

/// Does what `costs` says: reads or measures the profile, and on `cluster: local` measures the speeds of the ranks and
/// the links between them. Collective.
/// \throws InvalidInput  (SharedError) a profile that is not of this network or machine, with the command that makes
/// one.
void take_measured_costs(Session& session, const Arguments& arguments, const comm::World& world);

/// The same for planning in this process alone: only a kept profile is taken.
void take_kept_costs(Session& session);

}  // namespace millrace::app
