// Opens the library, checks that it fits, and adds its rows.
#include "planner/plugin.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::planner {

void load_plugin(const std::filesystem::path& file) {
  // With a slash in its name the loader takes the file itself and does not search the system's folders.
  const std::string path = std::filesystem::absolute(file).string();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: the registries point into it
  if (library == nullptr) throw InvalidInput(fmt::format("--plugin {}: {}", file.string(), dlerror()));
  const auto function = reinterpret_cast<PluginFunction>(dlsym(library, "millrace_plugin"));
  if (function == nullptr) {
    throw InvalidInput(
        fmt::format("--plugin {}: not a plug-in of millrace: it has no function millrace_plugin", file.string()));
  }
  const Plugin& plugin = *function();
  if (plugin.layout != plugin_layout()) {
    throw InvalidInput(fmt::format(
        "--plugin {}: built against headers of another version of millrace; build it again against those of this one",
        file.string()));
  }
  for (const partitioners::Entry& entry : plugin.partitioners) partitioners::add(entry);
  for (const PluginSchedule& schedule : plugin.schedules) {
    schedules::add(schedule.entry);
    plan::add_schedule_traits(schedule.traits);
  }
}

}  // namespace millrace::planner
