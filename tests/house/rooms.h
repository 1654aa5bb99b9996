// The table of rooms of docs/architecture.md: what each may include, and which libraries only some may touch.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace millrace::house {

/// A folder with one purpose; it may also include what the rooms it names may include.
struct Room {
  std::string name;
  std::vector<std::string> may_include;
};

inline const std::vector<Room>& rooms() {
  static const std::vector<Room> table{
      {"base", {}},
      {"config", {"base"}},
      {"graph", {"base"}},
      {"models", {"graph", "config"}},  // config: a model's options are option records
      {"import", {"graph", "config"}},
      {"cluster", {"base", "config"}},
      {"cost", {"graph", "cluster"}},
      {"plan", {"graph", "cluster", "cost"}},
      {"shard", {"graph", "cluster", "cost", "plan"}},
      {"program", {"plan"}},
      {"sim", {"program", "cost"}},
      {"partitioners", {"base", "graph", "cluster", "cost", "plan"}},
      {"schedules", {"base", "plan", "program"}},
      {"planner", {"models", "import", "shard", "sim", "partitioners", "schedules"}},
      {"storage", {"base"}},
      {"dataset", {"storage", "graph"}},
      {"kernels", {"graph"}},
      {"comm", {"base", "cluster"}},
      {"runtime", {"program", "kernels", "comm", "dataset", "storage"}},
      {"probe", {"kernels", "comm", "cost"}},
      {"record", {"plan", "program", "storage"}},
      {"app", {"planner", "runtime", "probe", "record"}},
  };
  return table;
}

/// Rooms beside src/ rather than in it: registries of plug-ins that never include each other.
inline const std::set<std::string>& plugin_rooms() {
  static const std::set<std::string> names{"partitioners", "schedules"};
  return names;
}

/// The headers of a plug-in room that its plug-ins share, besides common/.
inline const std::set<std::string>& plugin_interfaces() {
  static const std::set<std::string> names{"entry.h", "partitioner.h", "registry.h", "schedule.h"};
  return names;
}

/// A library whose headers start with `prefix` and that only these rooms, and app, include.
struct Wrapped {
  std::string prefix;
  std::set<std::string> rooms;
};

inline const std::vector<Wrapped>& wrapped_libraries() {
  static const std::vector<Wrapped> table{
      {"mpi.h", {"comm"}},          {"nccl", {"comm"}},      {"cuda", {"kernels", "comm"}},
      {"cudnn", {"kernels"}},       {"cublas", {"kernels"}}, {"dnnl", {"kernels"}},
      {"oneapi/dnnl", {"kernels"}}, {"hdf5", {"storage"}},   {"H5", {"storage"}},
      {"yaml-cpp", {"config"}},     {"spdlog", {"base"}},    {"Random123", {"base"}},
      {"xxhash", {"base"}},         {"hwloc", {"cluster"}},  {"CLI", {}},
      {"metis", {"partitioners"}},  {"scotch", {"partitioners"}},
  };
  return table;
}

}  // namespace millrace::house
