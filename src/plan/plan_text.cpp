// Writes and reads the plan file through the config room.
#include "plan/plan_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"
#include "config/document.h"
#include "config/emit.h"
#include "config/reader.h"
#include "plan/closed_form.h"
#include "plan/op_patterns.h"
#include "plan/validate.h"

namespace millrace::plan {
namespace {

using config::Field;
using config::Node;
using config::Reader;

template <class Numbers>
Node number_list(const Numbers& numbers) {
  Node list = Node::sequence();
  for (const auto number : numbers) list.items.push_back(Node::plain(fmt::format("{}", number)));
  return list;
}

Node text_list(const std::vector<std::string>& texts) {
  Node list = Node::sequence();
  for (const std::string& text : texts) list.items.push_back(Node::quote(text));
  return list;
}

// The text of each list of operators: equal pipelines share their lists, so it is made once.
class Texts {
 public:
  explicit Texts(const Graph& graph) : graph_(graph) {}
  const Node& of(const OpList& ops) {
    const auto [entry, is_new] = known_.try_emplace(ops.data());
    if (is_new) entry->second = text_list(to_patterns(graph_, ops));
    return entry->second;
  }

 private:
  const Graph& graph_;
  std::map<const OpId*, Node> known_;
};

Node to_node(const Stage& stage, Texts& texts) {
  Node node = Node::map();
  node.add("ops", texts.of(stage.ops));
  node.add("devices", number_list(stage.devices));
  node.add("shares", number_list(stage.shares));
  node.add("tensor_parallel", Node::plain(fmt::format("{}", stage.tensor_parallel)));
  node.add("recompute", texts.of(stage.recompute));
  return node;
}

Node to_node(const Pipeline& pipeline, Texts& texts) {
  Node node = Node::map();
  node.add("share", Node::plain(fmt::format("{}", pipeline.share)));
  node.add("micro_batches", Node::plain(fmt::format("{}", pipeline.micro_batches)));
  if (!pipeline.warmup.empty()) node.add("warmup", number_list(pipeline.warmup));
  Node stages = Node::sequence();
  for (const Stage& stage : pipeline.stages) stages.items.push_back(to_node(stage, texts));
  node.add("stages", std::move(stages));
  return node;
}

std::vector<int> to_int(const std::vector<std::int64_t>& numbers) {
  std::vector<int> result;
  for (const std::int64_t number : numbers) result.push_back(static_cast<int>(number));
  return result;
}

constexpr config::IntegerList kCounts{0, std::numeric_limits<int>::max()};
constexpr config::Integer kAtLeastOne{1, std::numeric_limits<int>::max()};

// Lists of patterns as written, and where each item stands.
struct Patterns {
  std::vector<std::vector<std::string>> texts;
  std::vector<std::vector<Field>> fields;

  void add(const Field& list) {
    std::vector<std::string> items;
    std::vector<Field> places = list.items();
    for (const Field& item : places) items.push_back(item.as(config::Text{}));
    texts.push_back(std::move(items));
    fields.push_back(std::move(places));
  }

  std::vector<std::vector<OpId>> resolve(const Graph& graph) const {
    ResolvedStages resolved = resolve_patterns(graph, texts);
    for (const PatternFault& fault : resolved.faults) fields[fault.stage][fault.item].refuse(fault.text);
    return std::move(resolved.ops);
  }

  // Of a list that stands in a stage: each item selects among the stage's operators, at least one of them.
  std::vector<OpId> resolve_within(const Graph& graph, const OpList& ops) const {
    std::vector<OpId> sorted(ops.begin(), ops.end());
    std::sort(sorted.begin(), sorted.end());
    const auto foreign = [&](OpId op) { return !std::binary_search(sorted.begin(), sorted.end(), op); };
    std::vector<OpId> selected = resolve(graph).front();
    if (std::none_of(selected.begin(), selected.end(), foreign)) return selected;
    for (std::size_t item = 0; item < texts.front().size(); ++item) {
      const std::vector<OpId> its = resolve_patterns(graph, {{texts.front()[item]}}).ops.front();
      if (!its.empty() && std::all_of(its.begin(), its.end(), foreign)) {
        fields.front()[item].refuse("'" + texts.front()[item] + "' matches no operator of this stage");
      }
    }
    std::erase_if(selected, foreign);
    return selected;
  }
};

class PlanReader {
 public:
  PlanReader(const Graph& graph, config::Problems& problems) : graph_(graph), problems_(problems) {}

  Plan read(const Node& document) {
    Reader map(document, problems_);
    map.required("millrace_plan", config::Integer{1, 1});
    Plan plan;
    plan.model = map.get("model", config::Text{}, graph_.name());
    const Field digest = map.field("graph_digest");
    plan.graph_digest = digest.as(config::Text{});
    same_graph_ = !digest || plan.graph_digest == graph_.digest();
    if (!same_graph_) {
      digest.refuse(fmt::format("the plan is for graph {} of model '{}'; this is graph {} of '{}'", plan.graph_digest,
                                plan.model, graph_.digest(), graph_.name()));
    }
    read_schedule(map.field("schedule"), plan);
    plan.bucket_size = map.get("bucket_size", config::Size{}, plan.bucket_size);
    for (const Field& field : map.field("pipelines").items()) {
      Pipeline pipeline = read_pipeline(field);
      if (!plan.pipelines.empty()) share_lists(plan.pipelines.back(), pipeline);
      plan.pipelines.push_back(std::move(pipeline));
    }
    return plan;
  }

 private:
  // A name, or a map of the name and options: {name: hippie, base: 1f1b}.
  static void read_schedule(const Field& field, Plan& plan) {
    if (!field.is_map()) {
      plan.schedule = field.as(config::Text{});
      check_schedule(field, plan.schedule);
      return;
    }
    Reader map = field.map();
    plan.schedule = map.required("name", config::Text{});
    if (const Field name = map.field("name")) check_schedule(name, plan.schedule);
    for (const auto& [name, value] : map.entries()) {
      if (name != "name") plan.schedule_options[name] = value.as(config::Text{});
    }
  }

  static void check_schedule(const Field& field, const std::string& name) {
    if (!field || name.empty()) return;  // told already
    try {
      schedule_traits(name);
    } catch (const InvalidInput& unknown) {
      field.refuse(unknown.what());
    }
  }

  Pipeline read_pipeline(const Field& field) {
    Reader map = field.map();
    Pipeline pipeline;
    pipeline.share = map.get("share", config::Real{}, 1.0);
    pipeline.micro_batches = map.required("micro_batches", kAtLeastOne);
    pipeline.warmup = to_int(map.get("warmup", kCounts, {}));
    Patterns ops;
    std::vector<Patterns> recompute;
    for (const Field& item : map.field("stages").items()) {
      pipeline.stages.push_back(read_stage(item, ops, recompute.emplace_back()));
    }
    if (!same_graph_) return pipeline;  // names of another graph say nothing
    const auto resolved = ops.resolve(graph_);
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      pipeline.stages[s].ops = resolved[s];
      pipeline.stages[s].recompute = recompute[s].resolve_within(graph_, pipeline.stages[s].ops);
    }
    return pipeline;
  }

  // Equal pipelines hold one list a stage, as those of a partitioner do.
  static void share_lists(const Pipeline& before, Pipeline& pipeline) {
    for (std::size_t s = 0; s < std::min(before.stages.size(), pipeline.stages.size()); ++s) {
      if (pipeline.stages[s].ops == before.stages[s].ops) pipeline.stages[s].ops = before.stages[s].ops;
    }
  }

  static Stage read_stage(const Field& field, Patterns& ops, Patterns& recompute) {
    Reader map = field.map();
    Stage stage;
    ops.add(map.field("ops"));
    stage.devices = to_int(map.required("devices", kCounts));
    stage.tensor_parallel = static_cast<int>(map.get("tensor_parallel", kAtLeastOne, 1));
    if (const Field shares = map.field("shares")) {
      for (const Field& share : shares.items()) stage.shares.push_back(share.as(config::Real{}));
    } else {
      const auto replicas = stage.devices.size() / static_cast<std::size_t>(std::max(1, stage.tensor_parallel));
      stage.shares.assign(replicas, 1.0 / static_cast<double>(replicas));
    }
    if (const Field list = map.field("recompute")) {
      recompute.add(list);
    } else {
      recompute.texts.emplace_back();
    }
    return stage;
  }

  const Graph& graph_;
  config::Problems& problems_;
  bool same_graph_ = true;
};

}  // namespace

std::string to_yaml(const Plan& plan, const Graph& graph) {
  Node node = Node::map();
  node.add("millrace_plan", Node::plain("1"));
  node.add("model", Node::quote(plan.model));
  node.add("graph_digest", Node::quote(plan.graph_digest));
  if (plan.schedule_options.empty()) {
    node.add("schedule", Node::quote(plan.schedule));
  } else {
    Node schedule = Node::map();
    schedule.add("name", Node::quote(plan.schedule));
    for (const auto& [name, written] : plan.schedule_options) schedule.add(name, Node::plain(written));
    node.add("schedule", std::move(schedule));
  }
  node.add("bucket_size", Node::plain(fmt::format("{} B", plan.bucket_size.value())));
  Node pipelines = Node::sequence();
  Texts texts(graph);
  for (const Pipeline& pipeline : plan.pipelines) pipelines.items.push_back(to_node(pipeline, texts));
  node.add("pipelines", std::move(pipelines));
  return config::to_yaml(node);
}

Plan read_plan(const Node& document, const Graph& graph, config::Problems& problems) {
  return PlanReader(graph, problems).read(document);
}

Plan load_plan(const std::filesystem::path& file, const Graph& graph, const Limits& limits) {
  config::Problems problems;
  const Node document = config::load_file(file, problems);
  Plan plan = read_plan(document, graph, problems);
  problems.throw_if_any();
  Limits allowed = limits;
  allowed.several_stages = true;  // the schedule, which is not known here, has the last word
  require_valid(plan, graph, allowed, file.string());
  return plan;
}

}  // namespace millrace::plan
