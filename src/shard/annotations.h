// Annotations: properties of tensors that a user names by pattern, resolved and checked against the graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shard/propagate.h"

namespace millrace::shard {

/// One annotation as it is written. Either `tensor` or `op` is a pattern: a name or a glob; an operator stands for its
/// first output.
struct Annotation {
  std::string tensor;
  std::string op;
  std::string axis;  ///< empty: the last of the mesh
  Property::Kind kind = Property::Kind::split;
  int dim = 0;                  ///< of split; the batch axis is dimension 0 of batched tensors
  std::vector<double> weights;  ///< of split: of the parts; empty: equal
  std::string where;            ///< "e.yaml:7:5: plan.annotations[0]", for errors
};

/// "tensor 'blocks.*.mlp.up.weight' split 0 on axis 'tensor'".
std::string format(const Annotation& annotation);

/// What the annotations give, by tensor. An exact name wins over a pattern.
/// \throws InvalidInput  every fault, one a line: a pattern that matches nothing, an axis or a dimension that is not
/// there, a dimension that cannot be cut into so many parts, two annotations that contradict each other (both shown).
std::vector<Given> resolve(const std::vector<Annotation>& annotations, const Graph& graph, const TensorTable& tensors,
                           Mesh& mesh);

}  // namespace millrace::shard
