// Rows of `millrace bench planner` as a table for people, CSV or JSON.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace millrace::app {

/// The columns of INTERFACES 3 first, then the figures by which plans of one workload are compared.
const std::vector<std::string>& bench_columns();

/// One header line and one line a row; no line breaks inside fields. Rows are objects with bench_columns() as keys.
std::string bench_csv(const std::vector<nlohmann::json>& rows);

/// For reading: formatted figures, and how each objective value stands to the published one.
std::string bench_text(const std::vector<nlohmann::json>& rows);

}  // namespace millrace::app
