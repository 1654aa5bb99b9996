// Layers that cost nothing join their neighbours where no plan loses by it: fewer places to cut (dominance).
#pragma once

#include <vector>

#include "plan/published/layer_profile.h"

namespace millrace::partitioners {

struct MergedLayers {
  std::vector<int> group;  ///< by layer: a layer that names its group; −1: in none
  OpId idle = -1;          ///< a layer in no group, not an input, that reads nothing; −1: none
};

/// `keeps_activations`: layers with outputs are not free.
MergedLayers merge_free_layers(const plan::LayerFigures& layers, bool keeps_activations);

}  // namespace millrace::partitioners
