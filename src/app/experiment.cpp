// Reads an experiment file as a whole, and writes it back with every default filled in.
#include "app/experiment.h"

#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "app/sections.h"
#include "base/errors.h"
#include "config/document.h"
#include "config/emit.h"
#include "config/set.h"

namespace millrace::app {
namespace {

using config::Node;

std::string replace_name(std::string output, const std::string& name) {
  static constexpr std::string_view kMark = "{name}";
  for (auto at = output.find(kMark); at != std::string::npos; at = output.find(kMark, at + name.size())) {
    output.replace(at, kMark.size(), name);
  }
  return output;
}

Node write(const Experiment& experiment) {
  Node node = Node::map();
  node.add("name", Node::quote(experiment.name));
  node.add("seed", Node::plain(std::to_string(experiment.seed)));
  node.add("model", write_model(experiment.model));
  if (experiment.data.batch > 0) node.add("data", write_data(experiment.data));
  node.add("cluster", write_cluster(experiment.cluster));
  node.add("costs", write_costs(experiment.costs));
  node.add("plan", write_plan(experiment.plan));
  node.add("simulation", write_simulation(experiment.simulation));
  node.add("train", write_train(experiment));
  node.add("slowdown", write_slowdown(experiment.slowdown));
  node.add("output", Node::quote(experiment.output));
  return node;
}

std::map<std::string, std::string> places_of(const Node& root) {
  std::map<std::string, std::string> places;
  const Node* costs = root.is_map() ? root.find("costs") : nullptr;
  if (costs != nullptr) places["costs"] = config::to_text(costs->where);
  for (const std::string section : {"data", "plan", "train", "slowdown"}) {
    const Node* map = root.is_map() ? root.find(section) : nullptr;
    if (map == nullptr || !map->is_map()) continue;
    for (std::size_t i = 0; i < map->keys.size(); ++i) {
      places[section + "." + map->keys[i].text] = config::to_text(map->items[i].where);
    }
  }
  return places;
}

// A graph, a plan or a list in the place of an experiment: all its keys would be unknown.
void refuse_other_kinds(const Node& root) {
  struct Kind {
    const char* key;
    const char* what;
  };
  static constexpr std::array kinds{
      Kind{"millrace_graph", "this is a graph file; an experiment names it: model: {file: …}"},
      Kind{"millrace_plan", "this is a plan file; an experiment names it: plan: {file: …}"},
      Kind{"bench", "this is a list for millrace bench, which takes it with --data"},
      Kind{"sweep", "this is a sweep of experiments; it is run by millrace sweep"},
      Kind{"sweeps", "this names several sweeps; they are run by millrace sweep"}};
  for (const Kind& kind : kinds) {
    if (const auto index = root.index_of(kind.key)) {
      throw InvalidInput(fmt::format("{}: {}", config::to_text(root.keys[*index].where), kind.what));
    }
  }
}

Experiment read(const Node& root, config::Problems& problems) {
  Experiment experiment;
  experiment.places = places_of(root);
  {
    config::Reader reader(root, problems);
    const config::Field name = reader.field("name");
    experiment.name = name.as(config::Text{});
    if (name && experiment.name.find('/') != std::string::npos)
      name.refuse("a name has no '/': it names the results file");
    experiment.seed = static_cast<std::uint64_t>(reader.get("seed", config::Integer{0}, 1));
    experiment.train.seed = experiment.seed;
    experiment.model = read_model(reader.field("model"));
    experiment.data = read_data(reader.field("data"), experiment.model.file.has_value());
    experiment.cluster = read_cluster(reader.field("cluster"));
    experiment.costs = read_costs(reader.field("costs"));
    experiment.plan = read_plan(reader.field("plan"));
    experiment.simulation = read_simulation(reader.field("simulation"), experiment.seed,
                                            experiment.cluster.described && experiment.cluster.described->emulated());
    read_train(reader.field("train"), experiment);
    experiment.simulation.options.reduction = experiment.plan.reduction;
    experiment.slowdown = read_slowdown(reader.field("slowdown"));
    experiment.output = replace_name(reader.get("output", config::Text{}, "results/{name}.h5"), experiment.name);
  }
  problems.throw_if_any();
  return experiment;
}

}  // namespace

const std::vector<config::ShortForm>& experiment_short_forms() {
  static const std::vector<config::ShortForm> forms{
      {"plan.partitioner", "name"}, {"plan.schedule", "name"}, {"train.learning_rate", "kind"}, {"cluster", ""}};
  return forms;
}

Experiment read_experiment(const ExperimentSource& source) {
  config::Problems problems;
  Node root = config::load_file(source.file, problems);
  refuse_other_kinds(root);
  for (const std::string& set : source.sets) config::apply_set(root, set, experiment_short_forms(), problems);
  Experiment experiment = read(root, problems);
  if (source.output_folder) {
    const std::filesystem::path file = std::filesystem::path(experiment.output).filename();
    experiment.output = (std::filesystem::path(*source.output_folder) / file).string();
  }
  experiment.effective = effective_text(experiment);
  return experiment;
}

Experiment experiment_from_node(const Node& root, config::Problems& problems) {
  Experiment experiment = read(root, problems);
  experiment.effective = effective_text(experiment);
  return experiment;
}

Experiment experiment_from_text(const std::string& effective) {
  config::Problems problems;
  const Node root = config::load_text(effective, nullptr, problems);
  Experiment experiment = read(root, problems);
  experiment.effective = effective;
  return experiment;
}

std::string cited(const Experiment& experiment, const std::string& key, const std::string& other) {
  for (const std::string& written : {key, other}) {
    const auto place = experiment.places.find(written);
    if (place != experiment.places.end() && !place->second.empty()) return place->second + ": " + key;
  }
  return key;
}

std::string effective_text(const Experiment& experiment) { return config::to_yaml(write(experiment)); }

}  // namespace millrace::app
