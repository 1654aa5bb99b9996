// Cluster files and what an experiment says inline of a machine (INTERFACES 4): long form and short forms.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cluster/cluster.h"
#include "config/field.h"
#include "config/node.h"
#include "config/problems.h"

namespace millrace::cluster {

/// What a device of a short form is called; its figures are those of one core (cluster/local.h), so that a flat
/// cluster and a local one differ in their links only.
inline constexpr const char* kPlainDevice = "core";

/// The cluster that a map describes, with `flat`, `levels`, or `devices` and `nodes`. Its name is its key `name`, else
/// `name`. What is wrong is noted at its place; none where nothing can be made of it.
std::optional<Cluster> read_cluster(const config::Field& field, const std::string& name);

/// Reads a cluster file, whose name is the default of the cluster's.
/// \throws InvalidInput  where the file is no YAML document: `file:line:column: reason`.
std::optional<Cluster> load_cluster(const std::filesystem::path& file, config::Problems& problems);

/// The long form with every default filled in; reads back as an equal cluster.
/// \pre the devices of a node follow each other, as in every described cluster.
config::Node to_node(const Cluster& cluster);

}  // namespace millrace::cluster
