// The columns of the results tables: names, units and meaning (INTERFACES 6 and 9).
#pragma once

#include <vector>

#include "storage/column.h"

namespace millrace::record {

const std::vector<storage::Column>& iteration_columns();
const std::vector<storage::Column>& evaluation_columns();
const std::vector<storage::Column>& rank_columns();
const std::vector<storage::Column>& instruction_columns();

}  // namespace millrace::record
