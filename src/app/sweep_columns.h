// The columns of a sweep's table and the rows that results make.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/sweep_cells.h"
#include "record/data_table.h"

namespace millrace::app {

/// cell, status, reason, the axes (numbers where every value of an axis is one), then the scalars of a plan's JSON.
std::vector<storage::Column> sweep_columns(const Suite& suite);

/// The row of a cell with the document of work_on(), in the order of `columns`.
std::vector<record::Value> sweep_row(const std::vector<storage::Column>& columns, const SweepCell& cell,
                                     const nlohmann::json& document);

}  // namespace millrace::app
