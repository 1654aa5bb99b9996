// Turns the rows of a list into experiments.
#include "app/bench_list.h"

#include <algorithm>
#include <utility>

#include "config/document.h"
#include "config/problems.h"
#include "config/reader.h"

namespace millrace::app {
namespace {

using config::Field;
using config::Node;

// A name has no '/', since it names the results file of an experiment.
std::string experiment_name(std::string workload) {
  std::replace(workload.begin(), workload.end(), '/', '-');
  return workload;
}

// The file of the model, made absolute where the workloads hold it; what is missing is returned.
std::string settle_file(Node& model, const std::filesystem::path& workloads) {
  const auto index = model.is_map() ? model.index_of("file") : std::nullopt;
  if (!index || !model.items[*index].is_scalar()) return "";
  std::string& file = model.items[*index].text;
  const std::filesystem::path kept = workloads / file;
  if (std::filesystem::exists(kept)) {
    file = std::filesystem::absolute(kept).string();
  } else if (!std::filesystem::exists(file)) {
    return kept.string();
  }
  return "";
}

std::string name_of(const Field& partitioner) {
  if (!partitioner.is_map()) return partitioner.as(config::Text{});
  const Node* name = partitioner.node()->find("name");
  return name != nullptr ? name->text : "";
}

std::map<std::string, double> read_published(const Field& field) {
  std::map<std::string, double> published;
  config::Reader reader = field.map();
  for (const auto& [name, value] : reader.entries()) published[name] = value.as(config::Real{});
  return published;
}

class List {
 public:
  List(const Node& root, const std::filesystem::path& workloads, config::Problems& problems)
      : workloads_(workloads), reader_(root, problems) {}

  std::vector<BenchCase> read() {
    reader_.required("bench", config::OneOf{{"planner"}});
    for (const Field& row : reader_.field("rows").items()) add(row);
    return std::move(cases_);
  }

 private:
  void add(const Field& field) {
    config::Reader row(field);
    const std::string workload = row.required("workload", config::Text{});
    const Field partitioners = row.field("partitioners");
    const std::map<std::string, double> published = read_published(row.field("published"));
    std::optional<Seconds> published_cpu;
    if (const Field time = row.field("published_cpu")) published_cpu = time.as(config::Duration{});
    Node experiment = Node::map();
    experiment.where = field.where();
    experiment.add("name", Node::quote(experiment_name(workload)));
    for (const char* key : {"model", "data", "cluster", "plan", "seed"}) {
      if (const Field part = row.field(key)) experiment.add(key, *part.node());
    }
    std::string absent;
    if (const auto model = experiment.index_of("model")) absent = settle_file(experiment.items[*model], workloads_);
    Node& plan = experiment.at_or_new("plan", field.where());
    if (plan.is_null()) plan = Node::map();
    plan.add("partitioner", Node());
    for (const Field& partitioner : partitioners.items()) {
      plan.items.back() = *partitioner.node();
      BenchCase one{workload, name_of(partitioner), experiment, {}, published_cpu, absent};
      const auto figure = published.find(one.partitioner);
      if (figure != published.end()) one.published = figure->second;
      cases_.push_back(std::move(one));
    }
  }

  const std::filesystem::path& workloads_;
  config::Reader reader_;
  std::vector<BenchCase> cases_;
};

}  // namespace

std::vector<BenchCase> read_bench_list(const std::filesystem::path& file, const std::filesystem::path& workloads) {
  config::Problems problems;
  const Node root = config::load_file(file, problems);
  std::vector<BenchCase> cases = List(root, workloads, problems).read();
  problems.throw_if_any();
  return cases;
}

}  // namespace millrace::app
