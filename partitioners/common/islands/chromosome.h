// A division as random keys and cut positions, and the two ways in which two make a third (METHODS 6, `genetic`).
#pragma once

#include "partitioners/common/fm/shape_search.h"
#include "partitioners/common/fm/starts.h"

namespace millrace::partitioners::islands {

/// Keys that decode to the order in which the division is contiguous, and where it is cut.
struct Individual {
  fm::Keys keys;
  fm::Ends ends;
  fm::StageOf stage_of;
  fm::Machine::Value value{};

  bool operator<(const Individual& other) const { return value < other.value; }
};

/// The individual of a division: operators stage by stage, inside a stage in the order of `keys`.
Individual encode(const fm::Task& task, fm::Division division, const fm::Keys& keys);

/// Decodes and cuts, then improves.
Individual grown(const fm::Task& task, const fm::Keys& keys, const fm::Ends& ends, const fm::Effort& effort,
                 fm::Deadline deadline);

/// Each key and each cut from either parent at random, some keys drawn anew.
Individual uniform_child(const fm::Task& task, const Individual& a, const Individual& b, fm::Draws& draws,
                         const fm::Effort& effort, fm::Deadline deadline);

/// Contracts the edges that neither parent cuts, starts from the better parent on the coarse graph, then searches on
/// the fine one: never worse than the better parent.
Individual combined_child(const fm::Task& task, const Individual& a, const Individual& b, const fm::Effort& effort,
                          fm::Deadline deadline);

}  // namespace millrace::partitioners::islands
