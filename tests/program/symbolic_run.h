// Runs a program with numbers that stand for values, independently of the verifier: what would every update see?
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "graph/graph.h"
#include "program/program.h"

namespace millrace::test {

/// The value of every tensor's update on every rank, by (rank, bucket); two programs with equal outcomes train alike.
using Outcome = std::map<std::pair<int, std::int32_t>, std::uint64_t>;

/// Runs all ranks with slots, messages matched by tag in order, and collectives matched by group in order.
/// Empty when a rank cannot go on or touches what does not exist.
std::optional<Outcome> symbolic_run(const Graph& graph, const Program& program);

}  // namespace millrace::test
