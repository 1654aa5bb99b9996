// The parts of an experiment file, each read and written by a source file of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/experiment.h"
#include "config/node.h"
#include "config/option.h"
#include "config/reader.h"

namespace millrace::app {

/// A registry row as the sections need it.
struct NamedOptions {
  std::string name;
  config::Options options;
};

/// `name`, or `{name: …, option: …}`: a choice among `rows`; `what` is "partitioner".
Choice read_choice(const config::Field& field, const std::string& what, const std::vector<NamedOptions>& rows);
config::Node write_choice(const Choice& choice);

ModelSection read_model(const config::Field& field);
config::Node write_model(const ModelSection& model);

/// \param model_has_batch  whether the section may be missing, since the model's file says how large a batch is.
DataSection read_data(const config::Field& field, bool model_has_batch);
config::Node write_data(const DataSection& data);

ClusterSection read_cluster(const config::Field& field);
config::Node write_cluster(const ClusterSection& section);

CostsSection read_costs(const config::Field& field);
config::Node write_costs(const CostsSection& section);

std::vector<shard::Annotation> read_annotations(const config::Field& field);
config::Node write_annotations(const std::vector<shard::Annotation>& annotations);
std::vector<shard::Axis> read_mesh(const config::Field& field);
config::Node write_mesh(const std::vector<shard::Axis>& axes);

PlanSection read_plan(const config::Field& field);
config::Node write_plan(const PlanSection& plan);

/// \param seed      of the experiment, for draws.
/// \param emulated  whether the cluster is: its links are those of `contention: fixed`.
SimulationSection read_simulation(const config::Field& field, std::uint64_t seed, bool emulated);
config::Node write_simulation(const SimulationSection& section);

std::map<int, double> read_slowdown(const config::Field& field);
config::Node write_slowdown(const std::map<int, double>& slowdown);

void read_train(const config::Field& field, Experiment& experiment);
config::Node write_train(const Experiment& experiment);

}  // namespace millrace::app
