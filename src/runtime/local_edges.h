// What the stages of one rank pass to each other without a message, and the sums of gradients that come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"
#include "kernels/precision.h"
#include "program/program.h"
#include "runtime/slots.h"
#include "runtime/stage_runner.h"

namespace millrace::runtime {

/// A gradient that comes back from several stages is summed latest stage first, wherever those are (METHODS 4): the
/// first contribution is copied, the others are added. One that a stage of this rank has ready before its turn waits
/// beside the producer's slot.
class LocalEdges {
 public:
  /// \param runners  by flat stage index, with what they require; null where not of this rank.
  /// \param storage  none: nothing is allocated, and there is nothing to copy.
  LocalEdges(const Graph& graph, const Program& program, int rank, std::vector<StageRunner*> runners,
             kernels::Precision precision, kernels::Storage storage = kernels::Storage::real);

  /// Before a forward: copies what the stage reads from others of this rank.
  void fill(std::int32_t stage, std::int64_t iteration, std::int32_t micro_batch, Slots& slots) const;
  /// After a backward (backward_input): hands its input gradients to the stages of this rank that made the tensors.
  void give(std::int32_t stage, std::int64_t iteration, std::int32_t micro_batch, Slots& slots);
  /// Rows of a gradient that came from another rank, into the slot `at` of its producer.
  void add_received(const Transfer& transfer, const BoundMicroBatch& at, const void* data);
  /// Before a backward: adds what is left to add.
  void complete(std::int32_t stage, const BoundMicroBatch& at);

  /// Held for gradients that wait for their turn.
  std::int64_t buffer_bytes() const { return buffer_bytes_; }

 private:
  /// A tensor that a stage reads from another of this rank: its output, or its input where it received the tensor.
  struct Source {
    TensorId tensor = -1;
    std::int32_t stage = -1;
    bool received = false;
  };
  /// Buffers by slot of the producer's executable for so many rows.
  struct Waiting {
    std::int64_t rows = 0;
    std::vector<std::unique_ptr<std::byte[]>> slots;
  };
  struct Term {
    std::int32_t stage = -1;  // consumer
    bool local = false;
    std::vector<Waiting> waiting{};  // local and not the first
  };
  /// The gradient of one output of a stage.
  struct Sum {
    TensorId tensor = -1;
    std::int64_t row_bytes = 0;
    std::vector<Term> terms;  // latest stage first
    std::size_t next = 0;     // of the terms, for the micro-batch whose backward comes next
  };
  /// An input gradient that goes to a stage of this rank.
  struct Gift {
    std::int32_t producer = -1;
    std::size_t sum = 0;   // of the producer
    std::size_t term = 0;  // of the sum
  };

  void find_sources(const Program& program, const Graph& graph, const std::vector<StageGraph>& parts);
  void find_sums(const Program& program, const Graph& graph, int rank, const std::vector<StageGraph>& parts);
  void make_room(Term& term, const Program& program, int rank, std::size_t stage, std::int64_t row_bytes);
  static std::byte* waiting(const Term& term, const BoundMicroBatch& at);
  void add_term(Sum& sum, const BoundMicroBatch& at);

  std::vector<StageRunner*> runners_;
  kernels::Precision precision_;
  kernels::Storage storage_;                  // none: there is nothing to copy
  std::vector<std::vector<Source>> sources_;  // by flat stage index
  std::vector<std::vector<Sum>> sums_;        // by flat stage index of the producer
  std::vector<std::vector<Gift>> gifts_;      // by flat stage index of the consumer
  std::int64_t buffer_bytes_ = 0;
};

}  // namespace millrace::runtime
