// The builders of the families of networks, one source file each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace millrace::models {

Graph make_mlp(std::int64_t inputs, const std::vector<std::int64_t>& hidden, std::int64_t classes);

/// Images of any family are squares of `image` pixels.
Graph make_lenet(std::int64_t classes, std::int64_t image, std::int64_t channels);

/// Convolutions of each of the five blocks, as in VGG's table 1 (arXiv 1409.1556).
struct VggOptions {
  std::vector<std::int64_t> convolutions;
  std::int64_t classes = 1000;
  std::int64_t image = 224;
  std::int64_t channels = 3;
  double dropout = 0.0;
};
Graph make_vgg(const std::string& name, const VggOptions& options);

/// Residual networks (arXiv 1512.03385); the stride of a bottleneck is in its 3x3 convolution, as torchvision's.
struct ResnetOptions {
  std::vector<std::int64_t> blocks;  ///< residual blocks of each layer; widths double from layer to layer
  std::int64_t width = 64;           ///< channels of the first layer, before a bottleneck's expansion
  bool bottleneck = false;           ///< 1x1, 3x3, 1x1 with four times the channels out
  bool small_stem = false;           ///< one 3x3 convolution, instead of 7x7 with stride 2 and a max-pool
  std::int64_t classes = 1000;
  std::int64_t image = 224;
  std::int64_t channels = 3;
};
Graph make_resnet(const std::string& name, const ResnetOptions& options);

/// Decoder-only transformer as GPT-2 (pre-norm, learned positions, tanh GELU, no bias in the head).
struct GptOptions {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t sequence = 1024;
  std::int64_t vocabulary = 50257;
  bool tied = true;  ///< the head's weight is the token embedding's
  double dropout = 0.0;
};
Graph make_gpt(const GptOptions& options);

}  // namespace millrace::models
