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

/// Networks that classify images: classes, pixels of a side, channels of an image.
struct ImageOptions {
  std::int64_t classes = 1000;
  std::int64_t image = 224;
  std::int64_t channels = 3;
  double dropout = 0.0;  ///< before the last linear layer (alexnet: before each but the last)
};
/// arXiv 1404.5997, figure 2, as torchvision's.
Graph make_alexnet(const ImageOptions& options);
/// arXiv 1409.4842 as torchvision's: batch norm, no auxiliary classifiers, and 3x3 where the paper has 5x5.
Graph make_googlenet(const ImageOptions& options);
/// arXiv 1512.00567 as torchvision's, without the auxiliary classifier.
Graph make_inception_v3(const ImageOptions& options);
/// arXiv 1608.06993: growth 32, 64 channels in, halved between blocks. \param blocks  layers of each dense block
Graph make_densenet(const std::string& name, const std::vector<std::int64_t>& blocks, const ImageOptions& options);
/// arXiv 1505.04597, with batch norm and convolutions that keep the size; a class for each pixel.
/// \throws InvalidInput  the image is no multiple of 16.
Graph make_unet(const ImageOptions& options);
/// NASNet-A (4 @ 1056) of arXiv 1707.07012, table 2.
Graph make_nasnet_mobile(const ImageOptions& options);

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

/// Encoder-only transformer (arXiv 1810.04805): post-norm, learned positions, two segments, erf GELU.
struct BertOptions {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t sequence = 512;
  std::int64_t vocabulary = 30522;
  bool tied = true;             ///< the masked-LM head's weight is the token embedding's
  bool classification = false;  ///< pooler and classifier on the first position, instead of the masked-LM head
  std::int64_t classes = 2;     ///< of the classifier
  double dropout = 0.0;
};
Graph make_bert(const std::string& name, const BertOptions& options);

/// Translation with LSTM layers (arXiv 1609.08144), half of them the encoder's: as NVIDIA's GNMT v2 for MLPerf.
struct GnmtOptions {
  std::int64_t layers = 8;  ///< LSTM layers in all, even, at least 4
  std::int64_t width = 1024;
  std::int64_t sequence = 50;  ///< tokens of the source and of the target
  std::int64_t vocabulary = 32320;
  bool tied = true;  ///< one token embedding for source and target
  double dropout = 0.0;
};
Graph make_gnmt(const std::string& name, const GnmtOptions& options);

}  // namespace millrace::models
