// The checkpoints that a run makes: each owner writes its tensors, all agree, rank 0 gives them their name.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/agreement.h"
#include "runtime/checkpoint_manifest.h"
#include "runtime/checkpoint_shards.h"
#include "runtime/checkpoint_tensors.h"
#include "storage/step_folders.h"

namespace millrace::runtime {

/// Where checkpoints go and what they say beside the state of training.
struct CheckpointSettings {
  std::filesystem::path root;  ///< seen by all ranks
  std::int64_t every = 0;      ///< iterations between two; 0: on signals only
  int keep = 2;                ///< older ones are removed
  std::string graph_digest;    ///< as in CheckpointManifest, also below
  std::string order;
  std::string optimizer;
  std::string request;
  std::string partitioner;
  std::string plan;    ///< text of kPlanFile
  std::string config;  ///< text of kConfigFile
};

/// Collective: every rank of the transport makes one and calls it alike.
class Checkpoints {
 public:
  Checkpoints(CheckpointSettings settings, comm::Transport& transport);

  const CheckpointSettings& settings() const { return settings_; }

  /// Complete, or as if nothing had happened. Copies of a stage that this rank holds are alike.
  /// \throws SharedError  on every rank what one of them failed at; earlier checkpoints are as they were.
  void save(const TrainingCounters& counters, const Graph& graph, const std::vector<Bucket>& buckets,
            const std::vector<LocalStage>& stages, comm::WaitObserver& observer);

 private:
  using Step = std::function<void()>;  // called as the work goes on
  std::vector<double> write_own(std::int64_t step, const Graph& graph, const std::vector<Bucket>& buckets,
                                const std::vector<LocalStage>& stages, const WholeTensors& whole,
                                const Step& step_done) const;
  void complete(const TrainingCounters& counters, const Graph& graph, const std::vector<Bucket>& buckets,
                const std::vector<double>& described, const Step& step_done) const;

  CheckpointSettings settings_;
  storage::StepFolders folders_;
  comm::Transport& transport_;
  Agreement agreement_;
  int rank_;
  int ranks_;
};

}  // namespace millrace::runtime
