// One stage on this rank: its parameters, and its executables for every number of rows that its programs use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "kernels/device.h"
#include "program/program.h"
#include "runtime/part_group.h"

namespace millrace::runtime {

/// Where one micro-batch of a program runs.
struct BoundMicroBatch {
  kernels::Executable* executable = nullptr;  ///< null where this rank has no rows of the micro-batch
  int slot = -1;                              ///< given by Slots while the micro-batch is alive
  RowInterval rows;                           ///< of the global batch
};

/// Programs (the full batch, the shorter last one, evaluation) are declared first, then compiled once, then bound.
class StageRunner {
 public:
  /// \param group  of the rank's replica, where it has several ranks
  /// \param of_gradients  where their memory comes from; empty: the heap
  StageRunner(const Graph& graph, const Program& program, std::int32_t stage, kernels::Precision precision,
              std::uint64_t seed, kernels::Storage storage = kernels::Storage::real,
              std::unique_ptr<PartGroup> group = nullptr, const kernels::Allocator& of_gradients = {});

  /// Notes which row counts `program` needs on `rank`, how many micro-batches of each are alive at once, and how many
  /// versions of the weights.
  void require(const Program& program, int rank);
  /// Compiles what was required, with the split backward if any program asks for it.
  void compile(kernels::Device& device);
  /// What compile() will allocate, without doing it.
  struct Bytes {
    std::int64_t activations = 0;
    std::int64_t workspace = 0;
  };
  /// What executables of the stages of one plan need, by stage, rows, training and split backward.
  using KnownBytes = std::map<std::tuple<std::int32_t, int, std::int64_t, bool, bool>, kernels::ExecutableBytes>;
  /// \param known  on other ranks; it grows.
  Bytes bytes_needed(kernels::Device& device, KnownBytes& known);
  /// Slots of the executable for so many rows, once all programs are declared.
  int slots(std::int64_t rows, bool training) const { return needs_.at({rows, training}).slots; }
  /// Of the weights, that programs need beside the newest ones.
  int copies() const { return copies_; }
  /// The executable of every micro-batch of `program`.
  std::vector<BoundMicroBatch> bind(const Program& program, int rank) const;

  /// So many elements of the parameters were updated.
  void updated(std::int64_t elements);

  std::int32_t stage() const { return stage_; }
  /// Of the part that this rank has, with the numbers of part_graph(), in the order of parameter_order().
  const kernels::StageParameters& parameters() const { return parameters_; }
  kernels::StageParameters& parameters() { return parameters_; }
  /// The whole stage, which the executables of a part are seen as.
  const StageGraph& graph() const { return graph_; }
  /// The graph of what this rank computes: the whole one, or that of its part.
  const Graph& part_graph() const { return *computed_->graph; }
  /// Parameters and buffers in storage order, with the numbers of the whole graph.
  const std::vector<TensorId>& parameter_order() const { return order_; }
  /// Of a tensor of the whole graph: its number in parameters(); -1 where the stage has none.
  TensorId part_of(TensorId tensor) const;
  /// How the replica holds it, and which part this rank has.
  Holding holding(TensorId tensor) const;
  PartGroup* group() const { return group_.get(); }
  /// Empties what every rank of the replica computes and the first one's counts for, among `count` tensors of the
  /// storage order from `first` on.
  void drop_repeated(std::size_t first, std::size_t count);

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
  std::map<Key, int> peaks(const Program& program, int rank) const;
  kernels::CompileOptions options_for(const Key& key, const Need& need) const;
  std::unique_ptr<kernels::Executable> compile(kernels::Device& device, const kernels::CompileOptions& options);
  void initialize_part();

  std::int32_t stage_;
  std::uint64_t seed_;
  StageGraph graph_;
  std::unique_ptr<PartGroup> group_;
  std::vector<TensorId> order_;
  std::shared_ptr<const StageParts> parts_;  // null: this rank computes the whole stage
  const StageGraph* computed_;               // graph_, or that of the part
  kernels::StageParameters parameters_;
  std::vector<OpId> recompute_;
  std::map<Key, Need> needs_;
  int copies_ = 0;                     // of the weights
  kernels::Device* device_ = nullptr;  // that it was compiled by
};

}  // namespace millrace::runtime
