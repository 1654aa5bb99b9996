// Operators by name, range and glob, as users write them for stages; and back to text (INTERFACES 9).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace millrace::plan {

/// One item that is wrong: `stages[stage][item]`.
struct PatternFault {
  std::size_t stage = 0;
  std::size_t item = 0;
  std::string text;
};

struct ResolvedStages {
  std::vector<std::vector<OpId>> ops;  ///< by stage, ascending, distinct
  std::vector<PatternFault> faults;
};

/// Resolves the items of each stage. An item is the name of an operator, a range `a .. b` (both ends and all between
/// them in canonical order), or a glob on the whole name (`*` crosses dots). Names and ranges win over globs: an
/// operator that one stage names does not follow a glob of another. Faults: an item that matches nothing (with the
/// nearest name), an operator that two stages claim, or one stage twice by name.
/// Operators that no stage has are no fault here: see validate().
ResolvedStages resolve_patterns(const Graph& graph, const std::vector<std::vector<std::string>>& stages);

/// The shortest such text for `ops` (ascending): a range for each run of operators, else the name.
std::vector<std::string> to_patterns(const Graph& graph, const std::vector<OpId>& ops);

}  // namespace millrace::plan
