// Tells the forms of a cluster apart.
#include "cluster/cluster_file.h"

#include <utility>
#include <vector>

#include "cluster/long_form.h"
#include "cluster/short_form.h"
#include "config/document.h"
#include "config/reader.h"

namespace millrace::cluster {

namespace {

Cluster emulation_of(const Cluster& machine) {
  std::vector<int> node_of;
  for (int device = 0; device < machine.size(); ++device) node_of.push_back(machine.node_of(device));
  Cluster emulated(machine.name(), machine.kind(), machine.devices(), std::move(node_of), machine.nodes(),
                   machine.network(), true);
  emulated.set_host(machine.host());
  return emulated;
}

}  // namespace

std::optional<Cluster> read_cluster(const config::Field& field, const std::string& name) {
  config::Reader reader(field);
  const std::string own = reader.get("name", config::Text{}, name);
  const bool emulated = reader.get("emulated", config::Boolean{}, false);
  const auto marked = [&](std::optional<Cluster> cluster) {
    return cluster && emulated ? emulation_of(*cluster) : cluster;
  };
  const bool short_form = reader.has("flat") || reader.has("levels");
  if (short_form) return marked(read_short_form(reader, own));
  if (field.is_map() && !reader.has("nodes")) {
    reader.refuse("a cluster needs one of: nodes (with devices), flat, levels");
    reader.entries();  // nothing can be said of the other keys
    return std::nullopt;
  }
  return marked(read_long_form(reader, own));
}

std::optional<Cluster> load_cluster(const std::filesystem::path& file, config::Problems& problems) {
  const config::Node root = config::load_file(file, problems);
  return read_cluster(config::Field(root, "", problems), file.stem().string());
}

}  // namespace millrace::cluster
