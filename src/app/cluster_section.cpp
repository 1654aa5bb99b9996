// `cluster: local`, a cluster file, a map, or `model`: the machine that the model's file carries.
#include <fmt/format.h>

#include "app/sections.h"
#include "app/shipped_clusters.h"
#include "base/errors.h"
#include "base/text.h"
#include "cluster/cluster_file.h"
#include "cluster/rates.h"
#include "config/emit.h"
#include "config/input_file.h"

namespace millrace::app {
namespace {

// A file beside the experiment or in the working directory, else one that ships with millrace, by its name.
std::optional<std::filesystem::path> find_file(const config::Field& field) {
  const std::string written = field.as(config::Text{});
  if (written.empty()) return std::nullopt;
  const auto& source = field.where().source;
  try {
    return config::find_input(written, source ? source->folder : std::filesystem::path());
  } catch (const InvalidInput& error) {
    if (const auto shipped = shipped_cluster(written)) return shipped;
    std::vector<std::string> names;
    for (const std::filesystem::path& file : shipped_clusters()) names.push_back(file.stem().string());
    const auto nearest = nearest_name(std::filesystem::path(written).stem().string(), names);
    field.refuse(fmt::format(
        "{}; allowed: local, model, a cluster file, a map, or one that ships: {}{} (millrace "
        "clusters shows them)",
        error.what(), join(names), nearest ? fmt::format("; did you mean '{}'?", *nearest) : std::string()));
    return std::nullopt;
  }
}

std::optional<cluster::Cluster> load(const std::filesystem::path& file, const config::Field& field) {
  try {
    config::Problems problems;
    auto cluster = cluster::load_cluster(file, problems);
    problems.throw_if_any();
    return cluster;
  } catch (const InvalidInput& error) {
    field.refuse(error.what());
    return std::nullopt;
  }
}

planner::CarriedChanges read_changes(config::Reader& reader) {
  planner::CarriedChanges changes;
  reader.field("model").map();  // {}: it has no settings of its own
  if (const auto devices = reader.optional("devices", config::Integer{1, 1 << 20})) {
    changes.devices = static_cast<int>(*devices);
  }
  changes.memory = reader.optional("memory", config::Size{});
  if (const config::Field bandwidth = reader.field("bandwidth")) {
    changes.bandwidth = cluster::read_bandwidth(bandwidth);
  }
  return changes;
}

}  // namespace

ClusterSection read_cluster(const config::Field& field) {
  ClusterSection section;
  if (!field || field.is_word("local")) return section;
  if (field.is_word("model")) {
    section.carried.emplace();
  } else if (field.is_map() && field.node()->find("model") != nullptr) {
    config::Reader reader(field);
    section.carried = read_changes(reader);
  } else if (field.is_map()) {
    section.described = cluster::read_cluster(field, "inline");
  } else if (const auto file = find_file(field)) {
    section.described = load(*file, field);
    section.file = file;
  }
  return section;
}

config::Node write_cluster(const ClusterSection& section) {
  if (section.described) return cluster::to_node(*section.described);
  if (!section.carried) return config::Node::quote("local");
  config::Node node = config::Node::map();
  node.add("model", config::Node::map());
  const planner::CarriedChanges& changes = *section.carried;
  if (changes.devices) node.add("devices", config::Node::plain(std::to_string(*changes.devices)));
  if (changes.memory) node.add("memory", config::to_node(config::Value(*changes.memory)));
  if (changes.bandwidth) node.add("bandwidth", cluster::write_bandwidth(*changes.bandwidth));
  return node;
}

}  // namespace millrace::app
