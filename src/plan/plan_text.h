// Plans as files that a person can read, edit and give back (INTERFACES 3).
#pragma once

#include <filesystem>
#include <string>

#include "config/node.h"
#include "config/problems.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include "plan/validate.h"

namespace millrace::plan {

/// The plan as YAML; operators are written as names and ranges. Reads back as an equal plan.
/// \pre the plan is valid for `graph`.
std::string to_yaml(const Plan& plan, const Graph& graph);

/// Reads a plan for `graph` from a document. What is wrong (names, types, operators, another graph's digest) goes into
/// `problems` with its place; whether the plan can run is validate()'s to say.
Plan read_plan(const config::Node& document, const Graph& graph, config::Problems& problems);

/// Reads a file and holds it against the graph and the limits; a device may hold several stages (Limits::several_stages).
/// \throws InvalidInput  all that is wrong, with file, line and key; a plan that is not a complete, disjoint, convex
///                       cover names the operators.
Plan load_plan(const std::filesystem::path& file, const Graph& graph, const Limits& limits = {});

}  // namespace millrace::plan
