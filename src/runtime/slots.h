// Which slot of which executable holds a live micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"
#include "runtime/stage_runner.h"

namespace millrace::runtime {

/// The slots of one program on one rank. A micro-batch takes a slot of its executable when it is first asked for, and
/// gives it back at the end of its backward; a micro-batch of an iteration that overlaps another is another one.
/// Evaluation gives nothing back: the slot that was taken first is taken again. Nothing allocates.
class Slots {
 public:
  /// \param bound  by flat stage index; empty where the stage is not of this rank.
  Slots(const Program& program, std::vector<std::vector<BoundMicroBatch>> bound);

  /// Takes a slot where the micro-batch has none. No executable: this rank has no rows of it.
  const BoundMicroBatch& at(std::int32_t stage, std::int64_t iteration, std::int32_t micro_batch);
  /// Without taking one: for what lies beside the slots.
  const BoundMicroBatch& without_slot(std::int32_t stage, std::int32_t micro_batch) {
    return entry(stage, 0, micro_batch);
  }
  void give_back(std::int32_t stage, std::int64_t iteration, std::int32_t micro_batch);
  /// No micro-batch is alive any more.
  void clear();

 private:
  struct Pool {
    kernels::Executable* executable = nullptr;
    std::vector<int> free;  // training: taken from the end
    int next = 0;           // evaluation
  };
  BoundMicroBatch& entry(std::int32_t stage, std::int64_t iteration, std::int32_t micro_batch);
  Pool& pool_of(const kernels::Executable* executable);

  bool training_;
  std::int64_t iterations_;                            // that may overlap
  std::vector<std::vector<BoundMicroBatch>> entries_;  // by flat stage index: [iteration mod iterations_ · m + k]
  std::vector<Pool> pools_;                            // few
};

}  // namespace millrace::runtime
