// Tables of cells for the tests of reports.
#pragma once

#include <string>
#include <vector>

#include "record/data_table.h"

namespace millrace::record {

struct TestCell {
  std::string partitioner;
  std::int64_t devices = 1;
  std::int64_t batch = 32;
  std::int64_t repetition = 1;
  double throughput = 1;
  std::int64_t memory = 1 << 30;
  std::string kind = "simulated";
  std::string status = "done";
};

inline const std::vector<std::string>& test_axes() {
  static const std::vector<std::string> axes{"plan.partitioner", "ranks", "data.batch", "repetition"};
  return axes;
}

/// As a sweep keeps them.
inline DataTable table_of(const std::vector<TestCell>& cells) {
  using storage::ColumnType;
  DataTable table;
  const auto add = [&](const char* name, ColumnType type, const char* unit) {
    table.columns.push_back({name, type, unit, ""});
  };
  for (const char* name : {"cell", "status", "reason", "plan.partitioner"}) add(name, ColumnType::text, "1");
  for (const char* name : {"ranks", "data.batch", "repetition"}) add(name, ColumnType::int64, "1");
  add("partitioner", ColumnType::text, "1");
  add("devices", ColumnType::int64, "1");
  add("batch", ColumnType::int64, "1");
  add("throughput_samples_per_s", ColumnType::float64, "samples/s");
  add("peak_memory_bytes", ColumnType::uint64, "bytes");
  add("kind", ColumnType::text, "1");
  for (const TestCell& cell : cells) {
    const bool done = cell.status == "done";
    const auto only = [&](Value value) { return done ? value : Value(); };
    table.rows.push_back({"id" + std::to_string(table.rows.size()), cell.status, done ? "" : "it, \"broke\"",
                          cell.partitioner, cell.devices, cell.batch, cell.repetition, only(cell.partitioner),
                          only(cell.devices), only(cell.batch), only(cell.throughput), only(cell.memory),
                          only(cell.kind)});
  }
  return table;
}

}  // namespace millrace::record
