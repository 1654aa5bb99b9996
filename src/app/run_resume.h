// Where a run's checkpoints lie, what they say of it, and which one it goes on from.
#pragma once

#include <optional>

#include "app/planning.h"
#include "app/session.h"
#include "runtime/checkpoints.h"

namespace millrace::app {

/// "results/NAME.checkpoints", beside the results file.
std::filesystem::path checkpoint_root(const Experiment& experiment);

/// With --resume the newest complete checkpoint, the same on every rank; none where there is none yet.
/// \throws SharedError  (usage) a checkpoint of another model, order of samples or optimizer; without --resume and
///   --overwrite, checkpoints of a former run.
std::optional<runtime::FoundCheckpoint> find_checkpoint(const Session& session, const dataset::Source& source,
                                                        const Arguments& arguments, const comm::World& world);

/// Whether --resume finds a complete run of as many iterations, or one that left no checkpoint: its results stay as
/// they are, so that a job that is started again may always say --resume. The same on every rank.
bool nothing_left(const Session& session, const Arguments& arguments, const comm::World& world,
                  const std::optional<runtime::FoundCheckpoint>& checkpoint);

/// The plan that the checkpoint was made under, where the experiment asks for a plan as it did then; else the best one.
Chosen plan_to_resume(Session& session, const Arguments& arguments, const comm::World& world,
                      const std::optional<runtime::FoundCheckpoint>& checkpoint);

runtime::CheckpointSettings checkpoint_settings(const Session& session, const dataset::Source& source,
                                                const Chosen& chosen);

}  // namespace millrace::app
