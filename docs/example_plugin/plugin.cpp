// The rows that this plug-in brings.
#include "planner/plugin.h"

#include "halves.h"
#include "last_first.h"

using millrace::plan::ScheduleTraits;
using millrace::planner::Plugin;

extern "C" const Plugin* millrace_plugin() {
  static const Plugin plugin{
      .partitioners =
          {{"halves", "example: halve the operators until there is a stage for each device", {}, 0, example::halves}},
      .schedules = {{{"last_first",
                      "example: all forwards, then the backwards from the last micro-batch on",
                      {},
                      millrace::schedules::kSynchronous,
                      example::last_first},
                     // Planning counts it as gpipe, which computes the same in another order.
                     ScheduleTraits{
                         "last_first", millrace::plan::gpipe_time,
                         [](std::int64_t micro_batches, std::int64_t, std::int64_t) { return micro_batches; }, true}}},
  };
  return &plugin;
}
