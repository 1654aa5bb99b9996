// `plan:` – which partitioners and schedules are tried, and what is fixed beforehand.
#include <algorithm>

#include <fmt/format.h>

#include "app/sections.h"
#include "base/log.h"
#include "base/text.h"
#include "config/emit.h"
#include "partitioners/registry.h"
#include "plan/objective.h"
#include "schedules/registry.h"

namespace millrace::app {
namespace {

using config::Node;

template <class Registry>
std::vector<NamedOptions> rows_of(const Registry& registry) {
  std::vector<NamedOptions> rows;
  for (const auto& entry : registry) rows.push_back({entry.name, entry.options});
  return rows;
}

bool offers(const config::Option& option, const std::string& word) {
  const auto* words = std::get_if<config::OneOf>(&option.type);
  return words != nullptr && std::find(words->words.begin(), words->words.end(), word) != words->words.end();
}

// plan.order is the default of the partitioners' option of that name, where they offer that order.
std::vector<NamedOptions> partitioner_rows(const std::string& order) {
  std::vector<NamedOptions> rows = rows_of(partitioners::registry());
  for (NamedOptions& row : rows) {
    for (config::Option& option : row.options) {
      if (option.name == "order" && offers(option, order)) option.standard = order;
    }
  }
  return rows;
}

// plan.deferred_weights is for all schedules that take it.
std::vector<NamedOptions> schedule_rows() {
  std::vector<NamedOptions> rows = rows_of(schedules::registry());
  for (NamedOptions& row : rows) {
    std::erase_if(row.options, [](const config::Option& option) { return option.name == schedules::kDeferredWeights; });
  }
  return rows;
}

using MaskKind = planner::RecomputeMask::Kind;

struct RecomputeWord {
  const char* word;
  plan::Recompute cut;  // what partitioners are told
  MaskKind mask;
};
constexpr RecomputeWord kRecomputeWords[] = {{"none", plan::Recompute::none, MaskKind::as_cut},
                                             {"all", plan::Recompute::all, MaskKind::as_cut},
                                             {"auto", plan::Recompute::automatic, MaskKind::as_cut},
                                             {"all-but-last", plan::Recompute::all, MaskKind::all_but_last},
                                             {"chosen", plan::Recompute::automatic, MaskKind::chosen}};

const std::vector<std::string> kReductions{"all_reduce", "ps"};  // in the order of sim::Reduction

sim::Reduction read_reduction(config::Reader& reader) {
  const std::string word = reader.get("reduction", config::OneOf{kReductions}, kReductions.front());
  return word == kReductions.back() ? sim::Reduction::parameter_server : sim::Reduction::all_reduce;
}

const std::vector<std::string> kHidings{"auto", "drain", "backward", "update"};  // auto, then in the order of Hiding

std::optional<Hiding> read_hiding(config::Reader& reader) {
  const std::string word = reader.get("hiding", config::OneOf{kHidings}, kHidings.front());
  const auto found = std::find(kHidings.begin(), kHidings.end(), word);
  if (found == kHidings.begin() || found == kHidings.end()) return {};
  return static_cast<Hiding>(found - kHidings.begin() - 1);
}

// A word, or patterns of operators.
void read_recompute(config::Reader& reader, PlanSection& plan) {
  const config::Field field = reader.field("recompute");
  if (field.is_list()) {
    plan.recompute_mask = MaskKind::given;
    for (const config::Field& item : field.items()) plan.recompute_patterns.push_back(item.as(config::Text{}));
    if (plan.recompute_patterns.empty()) field.refuse("found an empty list, allowed: patterns of operators, or none");
    return;
  }
  std::vector<std::string> words;
  for (const RecomputeWord& one : kRecomputeWords) words.emplace_back(one.word);
  const std::string found = reader.get("recompute", config::OneOf{words}, words.front());
  for (const RecomputeWord& one : kRecomputeWords) {
    if (found != one.word) continue;
    plan.recompute = one.cut;
    plan.recompute_mask = one.mask;
  }
}

Node write_recompute(const PlanSection& plan) {
  if (plan.recompute_mask == MaskKind::given) {
    Node list = Node::sequence();
    for (const std::string& pattern : plan.recompute_patterns) list.items.push_back(Node::quote(pattern));
    return list;
  }
  for (const RecomputeWord& one : kRecomputeWords) {
    if (one.cut == plan.recompute && one.mask == plan.recompute_mask) return Node::quote(one.word);
  }
  return Node::quote(kRecomputeWords[0].word);
}

std::vector<Choice> read_choices(config::Reader& reader, const std::string& key, const std::vector<NamedOptions>& rows,
                                 const std::string& standard) {
  std::vector<Choice> choices;
  const config::Field field = reader.field(key);
  if (!field) {
    for (const NamedOptions& row : rows) {
      if (row.name == standard) choices.push_back({row.name, config::defaults(row.options)});
    }
    return choices;
  }
  for (const config::Field& item : field.items_or_one()) {
    Choice choice = read_choice(item, key, rows);
    const auto same = [&](const Choice& other) {
      return other.name == choice.name && other.options.all() == choice.options.all();
    };
    if (!choice.name.empty() && std::any_of(choices.begin(), choices.end(), same)) {
      item.refuse(fmt::format("'{}' is given twice, with the same options", choice.name));
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

Node write_choices(const std::vector<Choice>& choices) {
  if (choices.size() == 1) return write_choice(choices.front());
  Node list = Node::sequence();
  for (const Choice& choice : choices) list.items.push_back(write_choice(choice));
  return list;
}

template <class Number>
Node integers(const std::vector<Number>& numbers) {
  Node list = Node::sequence();
  for (const Number number : numbers) list.items.push_back(Node::plain(std::to_string(number)));
  return list;
}

// auto, or a count of at least 1.
std::optional<int> read_count(config::Reader& reader, const std::string& key) {
  const config::Field field = reader.field(key);
  if (!field || field.is_word("auto")) return std::nullopt;
  return static_cast<int>(field.as(config::Integer{1, 1 << 20}));
}

Node write_count(const std::optional<int>& count) { return Node::plain(count ? std::to_string(*count) : "auto"); }

void read_stages(config::Reader& reader, PlanSection& plan) {
  const config::Field field = reader.field("stages");
  if (!field.is_list()) {
    if (field && !field.is_word("auto")) plan.stages = static_cast<int>(field.as(config::Integer{1, 1 << 20}));
    return;
  }
  for (const config::Field& stage : field.items()) {
    plan.explicit_stages.emplace_back();
    for (const config::Field& pattern : stage.items()) {
      plan.explicit_stages.back().push_back(pattern.as(config::Text{}));
    }
    if (plan.explicit_stages.back().empty() && stage.is_list()) stage.refuse("a stage needs at least one operator");
  }
  if (plan.explicit_stages.empty()) field.refuse("needs at least one stage");
}

Node write_stages(const PlanSection& plan) {
  if (plan.explicit_stages.empty()) return write_count(plan.stages);
  Node stages = Node::sequence();
  for (const auto& patterns : plan.explicit_stages) {
    Node stage = Node::sequence();
    for (const std::string& pattern : patterns) stage.items.push_back(Node::quote(pattern));
    stages.items.push_back(std::move(stage));
  }
  return stages;
}

// A candidate of a list.
template <class Number>
void add_once(const config::Field& item, Number number, std::vector<Number>& list) {
  if (std::find(list.begin(), list.end(), number) != list.end()) item.refuse("given twice");
  list.push_back(number);
}

void read_micro_batches(config::Reader& reader, PlanSection& plan) {
  const config::Field count = reader.field("micro_batches");
  const config::Field size = reader.field("micro_batch_size");
  if (count && !count.is_word("auto")) {
    for (const config::Field& item : count.items_or_one())
      add_once(item, item.as(config::Integer{1}), plan.micro_batches);
  }
  if (!size) return;
  plan.micro_batch_size = size.as(config::Integer{1});
  if (!plan.micro_batches.empty()) size.refuse("give micro_batches or micro_batch_size, not both");
}

// auto, a size, or a list of candidates.
void read_bucket_sizes(config::Reader& reader, PlanSection& plan) {
  const config::Field field = reader.field("bucket_size");
  if (!field) return;
  plan.bucket_sizes.clear();
  if (field.is_word("auto")) return;
  for (const config::Field& item : field.items_or_one()) add_once(item, item.as(config::Size{}), plan.bucket_sizes);
  if (plan.bucket_sizes.empty()) field.refuse("found an empty list, allowed: auto, a size, or sizes");
}

Node write_bucket_sizes(const std::vector<Bytes>& sizes) {
  if (sizes.empty()) return Node::quote("auto");
  Node list = Node::sequence();
  for (const Bytes size : sizes) list.items.push_back(config::to_node(config::Value(size)));
  return sizes.size() == 1 ? list.items.front() : list;
}

// auto, a number of micro-batches, or a list of candidates.
void read_deferred_weights(config::Reader& reader, PlanSection& plan) {
  const config::Field field = reader.field("deferred_weights");
  if (!field) return;
  plan.deferred_weights.clear();
  if (field.is_word("auto")) return;
  for (const config::Field& item : field.items_or_one()) {
    add_once(item, item.as(config::Integer{0, 1 << 20}), plan.deferred_weights);
  }
  if (plan.deferred_weights.empty()) field.refuse("found an empty list, allowed: auto, a number, or numbers");
}

Node write_deferred_weights(const std::vector<std::int64_t>& counts) {
  if (counts.empty()) return Node::quote("auto");
  return counts.size() == 1 ? Node::plain(std::to_string(counts.front())) : integers(counts);
}

void read_warmup(config::Reader& reader, PlanSection& plan) {
  const config::Field field = reader.field("warmup");
  plan.search_warmup = !field || field.is_word("auto");
  if (plan.search_warmup || field.is_word("schedule")) return;
  if (field.is_list() && field.node()->items.empty())
    field.refuse("found an empty list, allowed: a number for each stage");
  for (const config::Field& item : field.items()) {
    plan.warmup.push_back(static_cast<int>(item.as(config::Integer{0, 1 << 30})));
  }
}

// A plan file says itself what these keys would choose.
const std::vector<std::string>& keys_of_search() {
  static const std::vector<std::string> keys{"partitioner",      "order",           "schedule",        "micro_batches",
                                             "micro_batch_size", "warmup",          "stages",          "pipelines",
                                             "recompute",        "tensor_parallel", "deferred_weights"};
  return keys;
}

// Given together they contradict each other. Where only the command line asks for the plan file, the experiment's keys
// are told to have no effect.
void read_file(config::Reader& reader, PlanSection& plan) {
  const config::Field file = reader.field("file");
  if (!file) return;
  plan.file = file.input_file();
  const auto from_file = [](const config::Field& field) {
    return field.where().source != nullptr && field.where().source->cites_lines;
  };
  std::vector<std::string> without_effect;
  for (const std::string& key : keys_of_search()) {
    const config::Field field = reader.field(key);
    if (!field) continue;
    if (from_file(field) && !from_file(file)) {
      without_effect.push_back(field.path());
    } else {
      field.refuse("given beside plan.file, which says it itself; leave one of them out");
    }
  }
  if (without_effect.empty()) return;
  log::notice(fmt::format("{} {} no effect: the plan is that of {}", join(without_effect),
                          without_effect.size() == 1 ? "has" : "have", plan.file->string()));
}

// What a plan file stands for.
void write_search(const PlanSection& plan, Node& node) {
  node.add("partitioner", write_choices(plan.partitioners));
  node.add("order", Node::quote(plan.order));
  node.add("schedule", write_choices(plan.schedules));
  if (plan.micro_batch_size) {
    node.add("micro_batch_size", Node::plain(std::to_string(*plan.micro_batch_size)));
  } else {
    node.add("micro_batches", plan.micro_batches.empty() ? Node::quote("auto") : integers(plan.micro_batches));
  }
  node.add("warmup",
           plan.warmup.empty() ? Node::quote(plan.search_warmup ? "auto" : "schedule") : integers(plan.warmup));
  node.add("stages", write_stages(plan));
  node.add("pipelines", write_count(plan.pipelines));
  node.add("recompute", write_recompute(plan));
  node.add("deferred_weights", write_deferred_weights(plan.deferred_weights));
}

}  // namespace

PlanSection read_plan(const config::Field& field) {
  config::Reader reader(field);
  PlanSection plan;
  plan.order = reader.get("order", config::OneOf{{"topological", "cluster", "best"}}, plan.order);
  plan.partitioners = read_choices(reader, "partitioner", partitioner_rows(plan.order), "dp");
  plan.schedules = read_choices(reader, "schedule", schedule_rows(), "1f1b");
  plan.objective = reader.get("objective", config::OneOf{plan::objective_names()}, plan.objective);
  read_micro_batches(reader, plan);
  read_warmup(reader, plan);
  read_bucket_sizes(reader, plan);
  read_deferred_weights(reader, plan);
  plan.reduction = read_reduction(reader);
  plan.hiding = read_hiding(reader);
  read_stages(reader, plan);
  plan.pipelines = read_count(reader, "pipelines");
  plan.memory_limit = reader.optional("memory_limit", config::Size{});
  read_recompute(reader, plan);
  plan.tensor_parallel = static_cast<int>(reader.get("tensor_parallel", config::Integer{1, 1 << 10}, std::int64_t{1}));
  plan.annotations = read_annotations(reader.field("annotations"));
  plan.mesh = read_mesh(reader.field("mesh"));
  read_file(reader, plan);
  return plan;
}

Node write_plan(const PlanSection& plan) {
  Node node = Node::map();
  if (plan.file) {
    node.add("file", Node::quote(plan.file->string()));
  } else {
    write_search(plan, node);
  }
  if (!plan.file) node.add("tensor_parallel", Node::plain(std::to_string(plan.tensor_parallel)));
  if (!plan.annotations.empty()) node.add("annotations", write_annotations(plan.annotations));
  if (!plan.mesh.empty()) node.add("mesh", write_mesh(plan.mesh));
  node.add("objective", Node::quote(plan.objective));
  node.add("bucket_size", write_bucket_sizes(plan.bucket_sizes));
  node.add("reduction", Node::quote(kReductions[static_cast<std::size_t>(plan.reduction)]));
  node.add("hiding", Node::quote(kHidings[plan.hiding ? static_cast<std::size_t>(*plan.hiding) + 1 : 0]));
  if (plan.memory_limit) node.add("memory_limit", config::to_node(config::Value(*plan.memory_limit)));
  return node;
}

}  // namespace millrace::app
