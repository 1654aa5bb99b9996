// Draws the figures of made-up operators and dispatches to the shapes.
#include "models/synthetic.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/hash.h"
#include "models/synthetic_builder.h"

namespace millrace::models {
namespace {

constexpr double kKiB = 1024.0;
constexpr double kMiB = 1024.0 * kKiB;

// Between the bounds with a uniform logarithm: figures of real networks spread over orders of magnitude.
double log_uniform(double least, double most, double uniform) { return least * std::pow(most / least, uniform); }

// Whole nanoseconds and whole 32-bit reals: the last bit of a logarithm differs from library to library.
double seconds(double least, double most, double uniform) {
  return std::round(1e9 * log_uniform(least, most, uniform)) / 1e9;
}
std::int64_t bytes(double least, double most, double uniform) {
  return static_cast<std::int64_t>(log_uniform(least, most, uniform)) / 4 * 4;
}

OpFigures draw(const Random& random, bool only_joins) {
  OpFigures figures;
  const double scale = only_joins ? 0.01 : 1.0;
  figures.forward_s = seconds(10e-6 * scale, 1e-3 * scale, random.uniform(0));
  figures.backward_input_s = figures.forward_s;
  figures.output_bytes = bytes(64 * kKiB, 2 * kMiB, random.uniform(1));
  if (only_joins) return figures;
  figures.saved_bytes = figures.output_bytes;
  // The upper half of this number says how large the parameters are.
  const double parameters = 2 * random.uniform(2) - 1;
  if (parameters >= 0) {
    figures.parameter_bytes = bytes(16 * kKiB, 4 * kMiB, parameters);
    figures.backward_weight_s = figures.forward_s;
  }
  return figures;
}

}  // namespace

SyntheticBuilder::SyntheticBuilder(const SyntheticOptions& options)
    : builder_("synthetic"), seed_(options.seed), shape_(options.seed, "synthetic.shape"), left_(options.operators) {
  const auto operators = static_cast<std::size_t>(options.operators);
  builder_.reserve(operators, operators + operators * 17 / 32);  // about half of the operators have parameters
}

std::int64_t SyntheticBuilder::below(std::int64_t bound) {
  return static_cast<std::int64_t>(shape_.below(static_cast<std::uint64_t>(bound), drawn_++));
}

TensorId SyntheticBuilder::add(std::vector<TensorId> inputs, bool only_joins) {
  static const std::uint64_t kStream = hash64("synthetic.figures");
  const Random random(seed_, kStream, 0, static_cast<std::uint64_t>(added_));
  --left_;
  return builder_.add_cost("op" + fmt::format_int(added_++).str(), std::move(inputs), draw(random, only_joins), layer_);
}

const std::vector<std::string>& synthetic_shape_names() {
  static const std::vector<std::string> names{"chain",        "series_parallel", "layered",
                                              "nasnet_cells", "skip_heavy",      "random_dag"};
  return names;
}

SyntheticShape synthetic_shape(std::string_view name) {
  const std::vector<std::string>& names = synthetic_shape_names();
  return static_cast<SyntheticShape>(std::find(names.begin(), names.end(), name) - names.begin());
}

Graph make_synthetic(const SyntheticOptions& options) {
  SyntheticBuilder graph(options);
  switch (options.shape) {
    case SyntheticShape::chain:
      add_chain(graph);
      break;
    case SyntheticShape::series_parallel:
      add_series_parallel(graph, options.width);
      break;
    case SyntheticShape::layered:
      add_layered(graph, options.width);
      break;
    case SyntheticShape::nasnet_cells:
      add_nasnet_cells(graph, options.width);
      break;
    case SyntheticShape::skip_heavy:
      add_skip_heavy(graph, options.width);
      break;
    case SyntheticShape::random_dag:
      add_random_dag(graph, options.width);
      break;
  }
  return graph.build();
}

}  // namespace millrace::models
