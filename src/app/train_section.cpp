// `train:` – optimizer, learning rate, clipping, precision, evaluation and limits.
#include "app/sections.h"
#include "config/emit.h"

namespace millrace::app {
namespace {

using config::Node;
using runtime::OptimizerKind;
using runtime::ScheduleKind;

const std::vector<std::string> kOptimizers{"sgd", "adam", "adamw"};
const std::vector<std::string> kRates{"constant", "step", "cosine"};
const std::vector<std::string> kPrecisions{"fp32", "bf16", "fp64"};

template <class Kind>
Kind kind_of(const std::vector<std::string>& names, const std::string& name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Kind>(i);
  }
  return Kind{};
}

template <class Kind>
const std::string& word_of(const std::vector<std::string>& names, Kind kind) {
  return names[static_cast<std::size_t>(kind)];
}

Node real(double value) { return config::to_node(config::Value(value)); }
Node integer(std::int64_t value) { return Node::plain(std::to_string(value)); }
Node boolean(bool value) { return Node::plain(value ? "true" : "false"); }

runtime::OptimizerOptions read_optimizer(const config::Field& field) {
  config::Reader reader(field);
  runtime::OptimizerOptions optimizer;
  optimizer.kind = kind_of<OptimizerKind>(kOptimizers, reader.get("kind", config::OneOf{kOptimizers}, "sgd"));
  const bool sgd = optimizer.kind == OptimizerKind::sgd;
  optimizer.learning_rate = reader.get("lr", config::Real{0.0}, sgd ? 0.01 : 1e-3);
  optimizer.weight_decay = reader.get("weight_decay", config::Real{0.0}, 0.0);
  if (sgd) {
    optimizer.momentum = reader.get("momentum", config::Real{0.0, 1.0}, 0.0);
    const config::Field nesterov = reader.field("nesterov");
    optimizer.nesterov = nesterov && nesterov.as(config::Boolean{});
    if (optimizer.nesterov && optimizer.momentum == 0) nesterov.refuse("Nesterov needs a momentum above 0");
  } else {
    optimizer.beta1 = reader.get("beta1", config::Real{0.0, 1.0}, optimizer.beta1);
    optimizer.beta2 = reader.get("beta2", config::Real{0.0, 1.0}, optimizer.beta2);
    optimizer.epsilon = reader.get("epsilon", config::Real{0.0}, optimizer.epsilon);
  }
  return optimizer;
}

Node write_optimizer(const runtime::OptimizerOptions& optimizer) {
  Node node = Node::map();
  node.add("kind", Node::quote(word_of(kOptimizers, optimizer.kind)));
  node.add("lr", real(optimizer.learning_rate));
  node.add("weight_decay", real(optimizer.weight_decay));
  if (optimizer.kind == OptimizerKind::sgd) {
    node.add("momentum", real(optimizer.momentum));
    node.add("nesterov", boolean(optimizer.nesterov));
  } else {
    node.add("beta1", real(optimizer.beta1));
    node.add("beta2", real(optimizer.beta2));
    node.add("epsilon", real(optimizer.epsilon));
  }
  return node;
}

runtime::LearningRateOptions read_rate(const config::Field& field) {
  runtime::LearningRateOptions rate;
  if (!field) return rate;
  if (!field.is_map()) {
    rate.kind = kind_of<ScheduleKind>(kRates, field.as(config::OneOf{kRates}));
    return rate;
  }
  config::Reader reader(field);
  rate.kind = kind_of<ScheduleKind>(kRates, reader.required("kind", config::OneOf{kRates}));
  rate.warmup = reader.get("warmup", config::Integer{0}, rate.warmup);
  if (rate.kind == ScheduleKind::cosine) rate.minimum = reader.get("minimum", config::Real{0.0}, rate.minimum);
  if (rate.kind == ScheduleKind::step) {
    rate.every = reader.required("every", config::Integer{1});
    rate.factor = reader.get("factor", config::Real{0.0, 1.0}, rate.factor);
  }
  return rate;
}

Node write_rate(const runtime::LearningRateOptions& rate) {
  Node node = Node::map();
  node.add("kind", Node::quote(word_of(kRates, rate.kind)));
  node.add("warmup", integer(rate.warmup));
  if (rate.kind == ScheduleKind::cosine) node.add("minimum", real(rate.minimum));
  if (rate.kind == ScheduleKind::step) {
    node.add("every", integer(rate.every));
    node.add("factor", real(rate.factor));
  }
  return node;
}

void read_checkpoint(const config::Field& field, runtime::TrainOptions& train) {
  if (!field || field.is_word("off")) return;
  config::Reader reader(field);
  train.checkpoint_every = reader.required("every", config::Integer{1});
  train.checkpoint_keep = static_cast<int>(reader.get("keep", config::Integer{1, 1 << 30}, train.checkpoint_keep));
}

Node write_checkpoint(const runtime::TrainOptions& train) {
  if (train.checkpoint_every == 0) return Node::quote("off");
  Node node = Node::map();
  node.add("every", integer(train.checkpoint_every));
  node.add("keep", integer(train.checkpoint_keep));
  return node;
}

}  // namespace

void read_train(const config::Field& field, Experiment& experiment) {
  config::Reader reader(field);
  runtime::TrainOptions& train = experiment.train;
  const config::Field epochs = reader.field("epochs");
  train.iterations = reader.get("iterations", config::Integer{1}, train.iterations);
  if (epochs) {
    experiment.epochs = epochs.as(config::Integer{1});
    if (reader.has("iterations")) epochs.refuse("give iterations or epochs, not both");
  }
  train.optimizer = read_optimizer(reader.field("optimizer"));
  train.learning_rate = read_rate(reader.field("learning_rate"));
  reader.get("batch_norm", config::OneOf{{"local"}}, "local");
  if (const config::Field clip = reader.field("clip_norm"); clip && !clip.is_word("off")) {
    train.clip_norm = clip.as(config::Real{0.0});
  }
  train.precision =
      kind_of<kernels::Precision>(kPrecisions, reader.get("precision", config::OneOf{kPrecisions}, "fp32"));
  const config::Field kernels = reader.field("kernels");
  if (kernels) train.kernels = kernels.as(config::OneOf{{"auto", "reference", "onednn"}});
  if (train.precision == kernels::Precision::fp64 && train.kernels == "onednn") {
    kernels.refuse("precision fp64 needs kernels: reference");
  }
  const config::Field evaluate = reader.field("evaluate_every");
  train.evaluates = !evaluate.is_word("off");
  if (evaluate && train.evaluates) train.evaluate_every = evaluate.as(config::Integer{0});
  read_checkpoint(reader.field("checkpoint"), train);
  if (const config::Field shard = reader.field("shard_optimizer")) train.shard_optimizer = shard.as(config::Boolean{});
  train.any_grid = reader.get("reproducible", config::OneOf{{"grid", "any"}}, "grid") == "any";
  train.maximum_skips = static_cast<int>(reader.get("maximum_skips", config::Integer{1, 1 << 30}, train.maximum_skips));
  train.stall_limit = reader.get("stall_limit", config::Duration{}, train.stall_limit);
}

Node write_train(const Experiment& experiment) {
  const runtime::TrainOptions& train = experiment.train;
  Node node = Node::map();
  if (experiment.epochs) {
    node.add("epochs", integer(*experiment.epochs));
  } else {
    node.add("iterations", integer(train.iterations));
  }
  node.add("optimizer", write_optimizer(train.optimizer));
  node.add("learning_rate", write_rate(train.learning_rate));
  node.add("batch_norm", Node::quote("local"));
  node.add("clip_norm", train.clip_norm > 0 ? real(train.clip_norm) : Node::quote("off"));
  node.add("precision", Node::quote(word_of(kPrecisions, train.precision)));
  node.add("kernels", Node::quote(train.kernels));
  node.add("evaluate_every", train.evaluates ? integer(train.evaluate_every) : Node::quote("off"));
  node.add("checkpoint", write_checkpoint(train));
  node.add("shard_optimizer", boolean(train.shard_optimizer));
  node.add("reproducible", Node::quote(train.any_grid ? "any" : "grid"));
  node.add("maximum_skips", integer(train.maximum_skips));
  node.add("stall_limit", config::to_node(config::Value(train.stall_limit)));
  return node;
}

}  // namespace millrace::app
