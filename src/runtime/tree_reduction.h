// Gradient sums between ranks in the order of one binary tree over the samples (train.reproducible: any).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/transport.h"
#include "kernels/sample_device.h"
#include "program/program.h"
#include "runtime/gradient_reducer.h"
#include "runtime/stage_runner.h"

namespace millrace::runtime {

/// \throws InvalidInput  what would make results depend on the grid: running statistics, an operator that a rank holds
///   twice, a program that does not flush.
void require_tree_reducible(const Graph& graph, const Program& program);

/// Each use of a parameter has a tree of its own, of which every rank holds the nodes of its rows. Nodes whose halves
/// lie on two ranks are formed by the left one's; the roots of a tied parameter's uses are added in operator order; the
/// sum goes to all owners. Every rank runs through the same list, so messages match without further tags.
class TreeReduction {
 public:
  TreeReduction(const Graph& graph, const Program& program, std::vector<StageRunner*> runners,
                kernels::SampleDevice& device, int rank, comm::Transport& transport);

  /// Before the first backward of an iteration.
  void begin();
  /// When all gradients are in the trees: sums all buckets into the places of their owners' reducers.
  void reduce(GradientReducer& reducer, comm::WaitObserver& observer);

 private:
  /// A node of the tree on the rank that holds all its rows; where the rows of a node lie on several ranks, its sum is
  /// formed in the first such node of it.
  struct Holder {
    int rank = -1;
    kernels::TreeNode node;
  };
  /// into += from
  struct Step {
    Holder into, from;
  };
  struct Use {
    std::vector<Step> steps;
    Holder root;
    kernels::GradientTree* tree = nullptr;  ///< of this rank's stage; null: it has none with this use
    std::int64_t offset = 0;                ///< bytes, in the nodes of that tree
  };
  /// Consecutive numbers of a bucket that are used alike.
  struct Part {
    std::int64_t elements = 0;
    std::vector<int> owners;
    std::byte* target = nullptr;  ///< where the sum belongs; null: this rank is no owner
    std::vector<Use> uses;
  };

  void add_part(const Graph& graph, std::int32_t bucket, std::size_t first, std::size_t count);
  Use make_use(const Bucket& bucket, TensorId tensor, OpId op) const;
  StageRunner* runner_of(std::int32_t stage) const;
  void reserve_nodes();

  std::byte* at(const Use& use, const Holder& holder) const;
  void run(const Part& part, const Use& into_use, const Holder& into, const Use& from_use, const Holder& from,
           comm::WaitObserver& observer);
  void deliver(const Part& part, comm::WaitObserver& observer);
  std::span<std::byte> span(std::byte* first, const Part& part) const;

  const Program& program_;
  std::vector<StageRunner*> runners_;
  kernels::SampleDevice& device_;
  int rank_;
  comm::Transport& transport_;
  kernels::Precision precision_;
  std::vector<Part> parts_;
  std::unique_ptr<std::byte[]> received_;
  std::vector<comm::Ticket> sends_;
};

}  // namespace millrace::runtime
