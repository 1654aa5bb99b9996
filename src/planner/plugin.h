// Partitioners and schedules from outside the tree: a shared library that is loaded by `--plugin` (INTERFACES 8).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "partitioners/registry.h"
#include "plan/closed_form.h"
#include "plan/evaluator.h"
#include "schedules/registry.h"

namespace millrace::planner {

/// A number that differs between builds whose value types do not fit each other. A plug-in hands over the number that
/// its own compiler saw; another one than the program's is refused instead of reading memory wrongly.
constexpr std::uint64_t plugin_layout() {
  std::uint64_t number = 1;  // raised when the meaning of a field changes and its size does not
  for (const std::size_t size :
       {sizeof(Graph), sizeof(Plan), sizeof(Stage), sizeof(Pipeline), sizeof(plan::Problem), sizeof(plan::PlanReport),
        sizeof(plan::StageReport), sizeof(plan::PlanSet), sizeof(cluster::Cluster), sizeof(cluster::Device),
        sizeof(partitioners::Entry), sizeof(schedules::Entry), sizeof(ComputeOrder), sizeof(StageDag)}) {
    number = number * 1000003 + size;
  }
  return number;
}

/// A schedule with what planning must know of it before there is an order.
struct PluginSchedule {
  schedules::Entry entry;
  plan::ScheduleTraits traits;  ///< its name is the entry's
};

/// What a plug-in brings. It must outlive the program: a static of the library.
struct Plugin {
  std::uint64_t layout = plugin_layout();
  std::vector<partitioners::Entry> partitioners;
  std::vector<PluginSchedule> schedules;
};

/// Every plug-in defines: extern "C" const millrace::planner::Plugin* millrace_plugin();
using PluginFunction = const Plugin* (*)();

/// Loads the library and adds its rows to the registries. Call it before anything looks a name up.
/// \throws InvalidInput  a file that cannot be loaded, is no plug-in, was built against other headers, or brings a name
///                       that is there already.
void load_plugin(const std::filesystem::path& file);

}  // namespace millrace::planner
