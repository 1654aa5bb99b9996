// Turns the rows of a list into experiments.
#include "app/bench_list.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "app/experiment.h"
#include "app/sections.h"
#include "base/errors.h"
#include "config/document.h"
#include "config/input_file.h"
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

// The file of the model, made absolute: in the folder of the workloads, beside the list, in the working directory. What
// is missing is returned, with the places.
std::string settle_file(Node& model, const std::filesystem::path& workloads) {
  const auto index = model.is_map() ? model.index_of("file") : std::nullopt;
  if (!index || !model.items[*index].is_scalar()) return "";
  Node& written = model.items[*index];
  const std::filesystem::path kept = std::filesystem::absolute(workloads / written.text).lexically_normal();
  if (std::filesystem::is_regular_file(kept)) {
    written.text = kept.string();
    return "";
  }
  try {
    const auto& source = written.where.source;
    written.text = config::find_input(written.text, source ? source->folder : std::filesystem::path()).string();
    return "";
  } catch (const InvalidInput& error) {
    return fmt::format("{} and {} (--workloads)", error.what(), kept.string());
  }
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
      : workloads_(workloads), reader_(root, problems), problems_(problems) {}

  BenchList read(const std::string& name) {
    reader_.required("bench", config::OneOf{{"planner"}});
    list_.sweep = reader_.get("sweep", config::Text{}, name);
    if (const Field published = reader_.field("published")) list_.published = published.input_file();
    config::Reader small(reader_.field("small"));
    for (const auto& [path, field] : small.entries()) list_.small.push_back({path, *field.node()});
    list_.table = reader_.get("table", config::Text{}, list_.sweep);
    list_.source = reader_.get("source", config::Text{}, "");
    list_.why = reader_.get("why", config::Text{}, "");
    const Field rows = reader_.field("rows");
    for (const Field& row : rows.items()) add(row);
    if (rows.is_list() && rows.node()->items.empty()) rows.refuse("found an empty list, allowed: at least one row");
    return std::move(list_);
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
    if (partitioners.is_list() && partitioners.node()->items.empty()) {
      partitioners.refuse("found an empty list, allowed: at least one partitioner");
    }
    for (const Field& partitioner : partitioners.items()) {
      plan.items.back() = *partitioner.node();
      BenchCase one{workload, name_of(partitioner), experiment, {}, published_cpu, absent};
      const auto figure = published.find(one.partitioner);
      if (figure != published.end()) one.published = figure->second;
      check(one, plan);
      list_.cases.push_back(std::move(one));
    }
  }

  // A mistake in the last row must not be found after hours. What is wrong with a row is so for each of its
  // partitioners: it is told once.
  void check(const BenchCase& one, const Node& plan) {
    std::string text;
    try {
      config::Problems problems;
      if (one.absent.empty()) {
        experiment_from_node(one.experiment, problems);
      } else {
        read_plan(Field(plan, "plan", problems));
        problems.throw_if_any();
      }
    } catch (const InvalidInput& error) {
      text = error.what();
    }
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      if (told_.insert(text.substr(begin, end - begin)).second) problems_.add({}, "", text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  const std::filesystem::path& workloads_;
  config::Reader reader_;
  config::Problems& problems_;
  BenchList list_;
  std::set<std::string> told_;
};

}  // namespace

BenchList read_bench_list(const std::filesystem::path& file, const std::filesystem::path& workloads) {
  config::Problems problems;
  const Node root = config::load_file(file, problems);
  BenchList list = List(root, workloads, problems).read(file.stem().string());
  problems.throw_if_any();
  return list;
}

std::filesystem::path workloads_folder(const std::string& typed) {
  const char* named = std::getenv("MILLRACE_WORKLOADS");
  if (typed.empty() && named == nullptr) return "../shared/workloads";
  const std::filesystem::path folder = typed.empty() ? named : typed;
  if (!std::filesystem::is_directory(folder)) {
    throw InvalidInput(
        fmt::format("{}: no such folder '{}'", typed.empty() ? "MILLRACE_WORKLOADS" : "--workloads", folder.string()));
  }
  return folder;
}

}  // namespace millrace::app
