// One stage on this rank: its parameters, and its executables for every number of rows that its programs use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernels/device.h"
#include "program/program.h"

namespace millrace::runtime {

/// Where one micro-batch of a program runs.
struct BoundMicroBatch {
  kernels::Executable* executable = nullptr;  ///< null where this rank has no rows of the micro-batch
  int slot = -1;
  RowInterval rows;  ///< of the global batch
};

/// Programs (the full batch, the shorter last one, evaluation) are declared first, then compiled once, then bound.
class StageRunner {
 public:
  StageRunner(const Graph& graph, const Program& program, std::int32_t stage, kernels::Precision precision,
              std::uint64_t seed, kernels::Storage storage = kernels::Storage::real);

  /// Notes which row counts `program` needs on `rank`, and how many micro-batches of each are alive at once.
  void require(const Program& program, int rank);
  /// Compiles what was required, with the split backward if any program asks for it.
  void compile(kernels::Device& device);
  /// Executable and slot of every micro-batch of `program`; a slot is reused once its backward is done.
  std::vector<BoundMicroBatch> bind(const Program& program, int rank) const;

  /// `count` tensors from position `first` of the storage order on were updated.
  void updated(std::size_t first, std::size_t count);

  std::int32_t stage() const { return stage_; }
  const kernels::StageParameters& parameters() const { return parameters_; }
  kernels::StageParameters& parameters() { return parameters_; }
  const StageGraph& graph() const { return graph_; }

  std::int64_t activation_bytes() const;  ///< of all slots
  std::int64_t workspace_bytes() const;

 private:
  struct Key {
    std::int64_t rows = 0;
    bool training = true;
    auto operator<=>(const Key&) const = default;
  };
  struct Need {
    int slots = 0;
    bool split_backward = false;
    std::unique_ptr<kernels::Executable> executable;
  };
  std::vector<std::pair<Key, int>> assign(const Program& program, int rank) const;

  std::int32_t stage_;
  std::uint64_t seed_;
  StageGraph graph_;
  kernels::StageParameters parameters_;
  std::map<Key, Need> needs_;
  kernels::Device* device_ = nullptr;  // that it was compiled by
};

}  // namespace millrace::runtime
