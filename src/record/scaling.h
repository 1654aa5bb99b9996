// Speed-up and efficiency over numbers of devices (METHODS 1), with confidence intervals over repetitions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/data_table.h"
#include "record/results.h"
#include "record/table_text.h"

namespace millrace::record {

/// A mean and half the width of its 95 % interval; 0 where there is one value only.
struct Interval {
  double value = 0;
  double half_width = 0;
};

struct ScalingRow {
  std::string kind;                ///< measured, emulated, simulated, oversubscribed: never compared with each other
  std::vector<std::string> group;  ///< what is scaled, by group column
  std::string scaling;             ///< "strong", "weak", or "mixed" where the batch follows neither
  std::int64_t devices = 0;
  std::int64_t batch = 0;
  std::size_t repetitions = 0;
  Interval throughput;  ///< samples/s
  Interval speed_up;    ///< against the fewest devices of the group
  Interval efficiency;  ///< speed-up over the ratio of devices
};

struct Scaling {
  std::vector<std::string> group_columns;  ///< axes that are neither repetitions nor set by the number of devices
  std::vector<ScalingRow> rows;            ///< by kind, group and devices; groups of one number of devices are left out
};

Scaling scaling_of(const DataTable& cells, const std::vector<std::string>& axes);
/// Of each sweep by itself, since the settings of one say nothing of another's: one group column more, `file`, where
/// there are several.
Scaling scaling_of(const std::vector<Results>& all);

/// "12.3 ± 0.4"; columns of the rows above.
TextTable readable(const Scaling& scaling);

}  // namespace millrace::record
