// The millrace graph file (INTERFACES 5), YAML or JSON: what `import -o` writes and what a person can write by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace millrace::import {

struct GraphFile {
  Graph graph;
  std::int64_t batch = 1;  ///< samples of an iteration where an experiment has no data section
};

/// Reads a graph file; JSON opens with '{'.
///
///     millrace_graph: 1                # required
///     name: two-branches               # default: the name of the file without its ending
///     micro_batch: 1                   # samples that the figures of cost operators are for
///     batch: 1                         # default: micro_batch
///     inputs: [{name: images, shape: [3, 32, 32]}]            # of one sample; element: real (default) or index
///     labels: [{name: labels, shape: [], element: index}]     # the same, read by a loss only; default element: index
///     operators:                       # in an order in which each reads only what stands above it
///       - {name: a, kind: cost, inputs: [], forward: 2 ms, backward: 4 ms, parameters: 4 MiB, output: 1 MiB}
///       - {name: fc, kind: linear, inputs: [images], out_features: 10, bias: true}
///
/// Every operator: `name`, `kind`, `inputs` (operators, meaning their first output; inputs and labels; or tensors such
/// as `loss.correct`; default none), `layer` (what layer_equal counts by). Keys that begin with `x-` are notes.
/// Kind `cost`: `forward`; `backward`, split evenly, or `backward_input` and `backward_weight` (each 0 when only the
/// other is given); `parameters`, `output`, `saved`. Defaults: 0, backward 2 × forward, saved as output. Times and
/// sizes need units. Times, output and saved are divided by micro_batch (bytes rounded up): the graph counts by sample.
/// Other kinds: their attributes, and `tied`, a list with a tensor above for each parameter to share, null for a new
/// one. They read the output of a cost operator as a flat vector of 4-byte reals. Parameters start as their kind says.
///
/// Key `carried`, which `import` writes, holds what the file of another planner says beyond the graph.
///
/// \param file  name of the file as errors cite it.
/// \throws InvalidInput  all that is wrong, with file, line, column, key and what is allowed.
GraphFile read_graph_file(std::string_view text, const std::string& file);

enum class GraphForm : std::uint8_t { yaml, json };

/// The file's text; reading it gives a graph with the same digest, layers, batch and Graph::carried.
std::string write_graph_file(const Graph& graph, std::int64_t batch, GraphForm form);

}  // namespace millrace::import
