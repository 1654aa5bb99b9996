// The columns that users' scripts rely on, as INTERFACES 6 and 9 list them.
#include "record/columns.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::record {
namespace {

using storage::Column;
using storage::ColumnType;
using ::testing::ElementsAre;

std::vector<std::string> names(const std::vector<Column>& columns) {
  std::vector<std::string> all;
  for (const Column& column : columns) all.push_back(column.name);
  return all;
}

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

TEST(Columns, AreThoseOfTheInterfaces) {
  EXPECT_THAT(names(iteration_columns()),
              ElementsAre("iteration", "epoch", "samples", "loss", "gradient_norm", "learning_rate", "time_s",
                          "throughput", "exposed_communication_s", "skipped"));
  EXPECT_THAT(names(evaluation_columns()), ElementsAre("iteration", "loss", "accuracy"));
  EXPECT_THAT(names(rank_columns()),
              ElementsAre("rank", "host", "device", "pipeline", "stages", "threads", "weights_bytes", "gradients_bytes",
                          "optimizer_bytes", "activations_bytes", "workspace_bytes", "buffers_bytes", "peak_bytes",
                          "peak_rss_bytes", "busy_s", "idle_s", "sent_bytes", "received_bytes", "predicted_peak_bytes",
                          "exposed_p2p_s", "exposed_gradients_s", "exposed_tensor_s", "exposed_other_s",
                          "gradients_in_flight_s"));
  EXPECT_THAT(names(instruction_columns()),
              ElementsAre("rank", "iteration", "kind", "stage", "micro_batch", "start_s", "end_s", "predicted_s"));
}

TEST(Columns, UnitsAndTypesFollowTheNames) {
  for (const auto* table : {&iteration_columns(), &evaluation_columns(), &rank_columns(), &instruction_columns()}) {
    for (const Column& column : *table) {
      SCOPED_TRACE(column.name);
      EXPECT_FALSE(column.unit.empty());
      EXPECT_FALSE(column.description.empty());
      if (ends_with(column.name, "_s")) {
        EXPECT_EQ(column.unit, "s");
        EXPECT_EQ(column.type, ColumnType::float64);
      }
      if (ends_with(column.name, "_bytes")) {
        EXPECT_EQ(column.unit, "bytes");
        EXPECT_EQ(column.type, ColumnType::uint64);
      }
      if (column.name == "throughput") {
        EXPECT_EQ(column.unit, "samples/s");
      }
      if (column.name == "skipped") {
        EXPECT_EQ(column.type, ColumnType::uint8);
      }
      for (const char* counted : {"iteration", "epoch", "samples", "rank", "device", "stage", "micro_batch"}) {
        if (column.name == counted) {
          EXPECT_EQ(column.type, ColumnType::int64);
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace::record
