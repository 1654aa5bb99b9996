// Figures of a run under the names that file, JSON and summary share (INTERFACES 3, 6).
#pragma once

#include <string>
#include <vector>

#include "app/emulation.h"
#include "app/planning.h"
#include "app/session.h"
#include "record/results_file.h"
#include "runtime/outcome.h"

namespace millrace::app {

/// Measured, over all ranks.
struct RunFigures {
  double iteration_time_s = 0;
  double throughput_samples_per_s = 0;
  std::int64_t peak_memory_bytes = 0;
  std::int64_t mean_memory_bytes = 0;
  std::int64_t peak_rss_bytes = 0;
  double memory_efficiency = 0;  ///< samples/s per GiB of the fullest rank
  double bubble_fraction = 0;    ///< idle compute time over all ranks' time
};

RunFigures measured_figures(const Session& session, const runtime::Outcome& outcome,
                            const std::vector<record::RankRow>& ranks);

std::vector<record::Fact> summary_facts(const RunFigures& figures, const runtime::Outcome& outcome);
std::vector<record::Fact> prediction_facts(const plan::PlanReport& predicted, const RunFigures& measured);

/// The same of an emulated run: nothing is called measured, and there are no losses.
std::vector<record::Fact> emulated_summary_facts(const RunFigures& figures, const EmulationFacts& emulation);
std::vector<record::Fact> emulated_prediction_facts(const plan::PlanReport& predicted, const RunFigures& emulated);

/// "measured", "emulated", or "oversubscribed" where ranks take turns on cores: what the figures of the session's runs
/// are.
std::string run_kind(const Session& session);

/// Which program made a results file, when and where.
std::vector<record::Fact> origin_facts(const comm::World& world, const std::string& command);

/// Attributes of `/` of a run: these and what it ran.
std::vector<record::Fact> root_facts(const Session& session, const comm::World& world, const std::string& command);

/// The cluster as text for `/cluster`.
std::string cluster_text(const cluster::Cluster& cluster);

}  // namespace millrace::app
