// The versions of a stage's weights that an asynchronous schedule keeps (METHODS 2: pipedream, pipedream-2bw).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/stage_parameters.h"
#include "program/program.h"

namespace millrace::runtime {

/// How many copies of a stage's weights a program needs.
struct VersionNeeds {
  int copies = 0;
  bool first = false;  ///< the weights of the beginning are among them: the first iteration loads them after updates
};

/// What is stashed on one stage of one rank. A stash costs nothing until an update is about to change the weights that
/// it names; then one copy serves all stashes of them.
class WeightVersions {
 public:
  static VersionNeeds needs(const Program& program, int rank, std::int32_t stage);

  /// \param parameters  with room for the copies that are needed.
  WeightVersions(kernels::StageParameters& parameters, VersionNeeds needs);

  /// A run of iterations begins with the weights as they are.
  void begin();
  /// Its first iteration is complete: what it began with is not asked for any more.
  void first_iteration_is_over();

  void stash(std::int64_t iteration, std::int32_t micro_batch);
  /// The next computation uses this stash.
  void load(std::int64_t iteration, std::int32_t micro_batch);
  void drop(std::int64_t iteration, std::int32_t micro_batch);
  /// Before the newest weights change.
  void before_update();

  /// Lets computations read what was loaded, else the newest.
  void select() const;
  /// A computation has used what was loaded; all others read the newest.
  void used();

 private:
  struct Stash {
    std::int64_t iteration = 0;
    std::int32_t micro_batch = 0;
    int copy = kernels::StageParameters::kNewest;
  };
  WeightVersions() = default;  // counts only
  Stash* find(std::int64_t iteration, std::int32_t micro_batch);
  int free_copy();

  kernels::StageParameters* parameters_ = nullptr;  // null: counts only
  VersionNeeds needs_;
  std::vector<Stash> stashes_;
  std::optional<Stash> loaded_;
  bool updated_ = false;  // since begin()
  int most_copies_ = 0;
};

}  // namespace millrace::runtime
