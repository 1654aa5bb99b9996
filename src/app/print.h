// Prints tables and JSON documents on standard output.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/tables.h"

namespace millrace::app {

struct Planned;
struct Session;

/// Columns as wide as their longest cell, numbers to the right; a line under the header.
std::string table_text(const planner::Table& table);

/// Lines of a table that is printed row by row; what is longer than its column's width moves the rest of its line.
class TableLines {
 public:
  /// \param widths  of the columns at least; a heading is never cut.
  TableLines(const std::vector<std::string>& columns, std::vector<std::size_t> widths);
  /// The headings, and the line under them.
  std::string header() const;
  std::string row(const std::vector<std::string>& cells) const { return line(cells, true); }

 private:
  std::string line(const std::vector<std::string>& cells, bool numbers) const;

  std::vector<std::string> columns_;
  std::vector<std::size_t> widths_;
};

/// A list of a JSON document that is printed element by element: what was printed of an interrupted command lacks
/// nothing but the end of the document.
class JsonRows {
 public:
  /// \param key  of the list in the document; empty: the list is the document.
  explicit JsonRows(std::string key) : key_(std::move(key)) {}
  void add(const nlohmann::json& row);
  void finish();

 private:
  std::string key_;
  bool begun_ = false;
};

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
