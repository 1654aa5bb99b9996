// The samples of each batch on this rank: read ahead, and put into the executables micro-batch by micro-batch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dataset/order.h"
#include "dataset/prefetch.h"
#include "dataset/source.h"
#include "graph/stage_graph.h"
#include "program/program.h"
#include "runtime/stage_runner.h"

namespace millrace::runtime {

/// Serves the programs of one split: which one a batch belongs to is told by its number of rows. The sample order is a
/// function of (seed, epoch), so the ranks that read inputs and those that read labels agree without talking.
class Feed {
 public:
  /// \param programs  with different batch sizes; they outlive the feed.
  Feed(const Graph& graph, std::vector<const Program*> programs, int rank, const dataset::Source& source,
       dataset::Split split, const dataset::SampleOrder& order);

  /// Starts reading `steps` batches from `first` on.
  void start(std::int64_t first, std::int64_t steps);
  /// The next batch; its rows are at hand until the next call.
  const dataset::Batch& next();
  /// Stops reading.
  void stop() { prefetcher_.reset(); }

  /// Writes the inputs and labels that the stage reads for one micro-batch.
  void fill(const StageGraph& stage, const BoundMicroBatch& at, kernels::Precision precision) const;

 private:
  /// The rows of one program that this rank reads, ascending; one interval a micro-batch.
  struct Needs {
    std::int64_t batch = 0;
    std::vector<RowInterval> inputs;
    std::vector<RowInterval> labels;
  };
  const Needs& needs_of(std::size_t rows) const;
  void request(const dataset::Batch& batch, dataset::RowRequest& request) const;

  const Graph& graph_;
  const dataset::Source& source_;
  dataset::Split split_;
  dataset::SampleOrder order_;         // of the computing thread
  dataset::SampleOrder reader_order_;  // of the reading thread
  dataset::Batch batch_;
  dataset::Batch reader_batch_;
  std::vector<Needs> needs_;
  std::int64_t step_ = 0;
  const dataset::Rows* rows_ = nullptr;
  std::optional<dataset::Prefetcher> prefetcher_;
};

}  // namespace millrace::runtime
