// Prints tables and JSON documents on standard output.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/tables.h"

namespace millrace::app {

struct Planned;
struct Session;

/// Columns as wide as their longest cell, numbers to the right; a line under the header.
std::string table_text(const planner::Table& table);

/// \throws SystemError  when standard output does not take it, such as a full disk.
void print(const std::string& text);

/// One document, indented, with a line break; numbers that JSON has no word for become null.
void print(const nlohmann::json& document);

/// `--explain`: the stages of a plan, their memory by kind, why it takes so long, and what went into the figures.
void print_explanation(const Session& session, const plan::PlanReport& report);

/// The inputs of planning in base units (REPORTS P16).
void print_inputs(const Session& session);

/// The figures of a plan under the names of INTERFACES 3, and the same with its stages.
nlohmann::json figures_json(const plan::PlanReport& report);
nlohmann::json plan_json(const plan::PlanReport& report, const Graph& graph);

/// `{problem, cluster, plans, why_not}`, of a search.
nlohmann::json plans_document(const Session& session, const Planned& planned);

/// `problem {ops, tensors, edges, parameters, devices, batch}`.
nlohmann::json problem_json(const Graph& graph, int devices, std::int64_t batch);

}  // namespace millrace::app
