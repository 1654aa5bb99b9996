// `simulation:` – how transfers share links, what makes devices differ, and what failures cost.
#include "app/sections.h"
#include "config/emit.h"

namespace millrace::app {
namespace {

using config::Node;

const std::vector<std::string> kContentions{"none", "fixed", "dynamic"};  // in the order of sim::Contention
const std::vector<std::string> kDuplexes{"full", "half"};
const std::vector<std::string> kShapes{"none", "lognormal", "exponential"};  // in the order of sim::Shape

template <class Kind>
Kind kind_of(const std::vector<std::string>& words, const std::string& word) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return static_cast<Kind>(i);
  }
  return Kind{};
}

template <class Kind>
Node word(const std::vector<std::string>& words, Kind kind) {
  return Node::quote(words[static_cast<std::size_t>(kind)]);
}

Node real(double value) { return config::to_node(config::Value(value)); }
Node seconds(Seconds value) { return config::to_node(config::Value(value)); }

void read_jitter(const config::Field& field, sim::Noise& noise) {
  config::Reader reader(field);
  noise.shape = kind_of<sim::Shape>(kShapes, reader.get("shape", config::OneOf{kShapes}, "none"));
  noise.spread = reader.get("spread", config::Real{0.0, 1.0}, 0.0);
}

void read_stragglers(const config::Field& field, SimulationSection& section) {
  config::Reader reader(field);
  section.straggler_fraction = reader.get("fraction", config::Real{0.0, 1.0}, 0.0);
  section.straggler_factor = reader.get("factor", config::Real{1.0}, 1.5);
}

void read_failures(const config::Field& field, SimulationSection& section) {
  if (!field) return;
  config::Reader reader(field);
  sim::Failures failures;
  failures.mean_time_between = reader.required("mean_time_between", config::Duration{});
  if (failures.mean_time_between <= Seconds(0)) reader.field("mean_time_between").expected("a duration above 0 s");
  failures.restart = reader.get("restart", config::Duration{}, Seconds(0));
  failures.checkpoint = reader.get("checkpoint", config::Duration{}, Seconds(0));
  failures.checkpoint_every = reader.get("checkpoint_every", config::Duration{}, Seconds(0));
  section.failures = failures;
}

}  // namespace

SimulationSection read_simulation(const config::Field& field, std::uint64_t seed, bool emulated) {
  SimulationSection section;
  sim::Options& options = section.options;
  if (emulated) options.contention = sim::Contention::fixed;
  options.iterations = 3;
  options.noise.seed = seed;
  if (!field) return section;
  config::Reader reader(field);
  options.contention = kind_of<sim::Contention>(
      kContentions, reader.get("contention", config::OneOf{kContentions}, emulated ? "fixed" : "none"));
  options.half_duplex = reader.get("duplex", config::OneOf{kDuplexes}, "full") == "half";
  options.overlap = reader.get("overlap", config::Real{1.0, 10.0}, 1.0);
  options.iterations = static_cast<int>(reader.get("rounds", config::Integer{1, 1000}, 3));
  if (const config::Field jitter = reader.field("jitter")) read_jitter(jitter, options.noise);
  if (const config::Field stragglers = reader.field("stragglers")) read_stragglers(stragglers, section);
  read_failures(reader.field("failures"), section);
  return section;
}

Node write_simulation(const SimulationSection& section) {
  const sim::Options& options = section.options;
  Node node = Node::map();
  node.add("contention", word(kContentions, options.contention));
  node.add("duplex", Node::quote(options.half_duplex ? "half" : "full"));
  node.add("overlap", real(options.overlap));
  node.add("rounds", Node::plain(std::to_string(options.iterations)));
  Node jitter = Node::map();
  jitter.add("shape", word(kShapes, options.noise.shape));
  jitter.add("spread", real(options.noise.spread));
  node.add("jitter", jitter);
  Node stragglers = Node::map();
  stragglers.add("fraction", real(section.straggler_fraction));
  stragglers.add("factor", real(section.straggler_factor));
  node.add("stragglers", stragglers);
  if (section.failures) {
    Node failures = Node::map();
    failures.add("mean_time_between", seconds(section.failures->mean_time_between));
    failures.add("restart", seconds(section.failures->restart));
    failures.add("checkpoint", seconds(section.failures->checkpoint));
    failures.add("checkpoint_every", seconds(section.failures->checkpoint_every));
    node.add("failures", failures);
  }
  return node;
}

}  // namespace millrace::app
