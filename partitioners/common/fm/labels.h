// The stage of every node with the figures that follow from it, kept up to date move by move (METHODS 6, local search
// on stage labels): times of stages, bytes that cross, memory. A move costs the degree of its node.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "partitioners/common/fm/machine.h"
#include "partitioners/common/fm/netlist.h"

namespace millrace::partitioners::fm {

/// What is divided on what; all must outlive the labels.
struct Model {
  const Netlist* netlist = nullptr;
  const Times* times = nullptr;
  const Machine* machine = nullptr;
};

using StageOf = std::vector<std::int32_t>;

class Labels {
 public:
  /// \pre along every edge the stage does not fall, and no stage is empty.
  Labels(const Model& model, const StageOf& stage_of);

  const Model& model() const { return model_; }
  const StageOf& stage_of() const { return stage_of_; }
  int stage(Node node) const { return stage_of_[static_cast<std::size_t>(node)]; }
  int stages() const { return model_.machine->stages(); }
  int count(int stage) const { return count_[static_cast<std::size_t>(stage)]; }

  /// Stages that the node may be in while the others stay: from the last of its predecessors' to the first of its
  /// successors'.
  std::pair<int, int> range(Node node) const;

  /// \pre `to` is in range(node), and the node is not the last of its stage.
  void move(Node node, int to);

  Machine::Value value() const { return model_.machine->value(seconds_, received_, sums_, peak(), excess()); }

  // The figures, for tests and reports.
  std::span<const plan::StageSeconds> seconds() const { return seconds_; }  ///< in ticks
  std::int64_t received() const { return received_; }  ///< bytes of a micro-batch, once per receiving stage
  std::span<const StageSums> sums() const { return sums_; }
  double time(int stage) const { return seconds_[static_cast<std::size_t>(stage)].total().value(); }

 private:
  struct Pin {  // of a tensor in a stage that reads it
    std::int32_t stage = 0;
    std::int32_t readers = 0;
    std::int32_t savers = 0;
  };
  struct Holders {  // of a tied parameter in a stage
    std::int32_t stage = 0;
    std::int32_t nodes = 0;
  };

  std::span<const Pin> pins(std::int32_t tensor) const {
    return {pins_.data() + model_.netlist->readers.start(static_cast<std::size_t>(tensor)),
            static_cast<std::size_t>(pin_count_[static_cast<std::size_t>(tensor)])};
  }
  Pin pin(std::int32_t tensor, int stage) const;
  void add_reader(std::int32_t tensor, int stage, int readers, int savers);
  int producer_stage(std::int32_t tensor) const;
  void account(std::int32_t tensor, int producer_stage, int stage, int sign);
  void move_read(const Read& read, int from, int to);
  void move_output(std::int32_t tensor, int from, int to);
  void hold(Node node, int stage, int sign);
  void refresh(int stage);
  double peak() const;
  double excess() const;

  Model model_;
  StageOf stage_of_;
  std::vector<int> count_;
  std::vector<Pin> pins_;                // [readers.start(tensor) …]
  std::vector<std::int32_t> pin_count_;  // by tensor
  std::vector<std::vector<Holders>> tied_;
  std::vector<std::size_t> load_start_;    // of a stage's profiles
  std::vector<Ticks> forward_, backward_;  // by stage and profile
  std::vector<Ticks> transfer_;            // by stage
  std::int64_t received_ = 0;
  std::vector<StageSums> sums_;
  std::vector<plan::StageSeconds> seconds_;
  std::vector<double> memory_, excess_;  // by stage, where memory counts
};

}  // namespace millrace::partitioners::fm
