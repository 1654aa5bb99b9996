// What `run` keeps and shows: the results file, the progress line and the summary. Only rank 0 writes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "app/baseline.h"
#include "app/emulation.h"
#include "app/planning.h"
#include "app/progress.h"
#include "app/run_facts.h"
#include "app/session.h"
#include "app/stage_time_rows.h"
#include "comm/mpi/world.h"
#include "record/results_file.h"
#include "runtime/checkpoint_manifest.h"
#include "runtime/outcome.h"

namespace millrace::app {

class RunRecord final : public runtime::RunObserver {
 public:
  /// Opens the results file before training starts; a file that exists or is held ends all ranks with one message.
  /// \param begun  where a resumed run stands; else zeros.
  RunRecord(const Session& session, const Chosen& chosen, const runtime::Programs& programs, const Arguments& arguments,
            const comm::World& world, const runtime::TrainingCounters& begun);

  /// What the ranks are expected to hold, to be shown beside what they held. Collective.
  void expect(const RankReport& forecast);

  void iteration(const IterationRow& row) override;
  void evaluation(const EvaluationRow& row) override;
  void before_checkpoint() override;

  /// The run is emulated: its time begins. Collective.
  void start(Emulation& emulation);

  /// Collects what the ranks used, writes the last tables and prints the summary. Collective.
  void close(const runtime::Outcome& outcome);
  /// Marks the file as failed where it still can be written; what was written before stays.
  void fail();

 private:
  void write_results(const runtime::Outcome& outcome, const std::vector<record::RankRow>& ranks,
                     const std::vector<TimelineRow>& timeline);
  std::vector<record::Fact> scaling_facts(const RunFigures& figures) const;
  void print_summary(const runtime::Outcome& outcome, const std::vector<record::RankRow>& ranks) const;

  const Session& session_;
  const runtime::Programs& programs_;
  const Arguments& arguments_;
  const comm::World& world_;
  Progress progress_;
  std::optional<record::ResultsFile> file_;
  plan::PlanReport predicted_;                 ///< rank 0; its times are the simulator's
  std::vector<double> predicted_s_;            ///< rank 0: seconds of each instruction, rank after rank
  std::vector<std::int64_t> predicted_bytes_;  ///< rank 0: of each rank
  std::vector<StageTimeRow> stage_times_;      ///< rank 0: predicted, in the end measured too
  std::optional<Baseline> baseline_;           ///< rank 0
  std::int64_t samples_ = 0;
  Emulation* emulation_ = nullptr;
  std::optional<EmulationFacts> emulated_;  ///< of the whole run
};

/// Says which operation is late, lets `before` do what has to be done first and ends the job with the code of a failed
/// run.
std::function<void(const std::string&)> stall_handler(
    const comm::World& world, std::function<void()> before = [] {});

}  // namespace millrace::app
