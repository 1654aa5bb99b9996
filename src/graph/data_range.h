// Which indices a graph accepts in its data, for the checks that readers and generators of data make.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace millrace {

/// Labels are in [0, label_classes): the last dimension of the logits of cross_entropy; 0 when labels are no indices
/// (no loss, or another loss).
std::int64_t label_classes(const Graph& graph);

/// Elements of index input `input` are in [0, index_bound): the smallest vocabulary of the embeddings that read it;
/// 0 when none does.
std::int64_t index_bound(const Graph& graph, TensorId input);

}  // namespace millrace
