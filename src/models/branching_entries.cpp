// Rows of the registry: networks for images whose layers branch and join.
#include <fmt/format.h>

#include "models/entries.h"
#include "models/families.h"

namespace millrace::models {
namespace {

using config::Options;
using config::Values;

ImageOptions image_values(const Values& v) {
  return {.classes = v.integer("classes"),
          .image = v.integer("image"),
          .channels = v.integer("channels"),
          .dropout = v.real("dropout")};
}

// Classifiers differ in what they are called, the image, and the smallest that their strides leave a pixel of.
Entry classifier(std::string name, std::string text, const std::string& image, std::int64_t smallest,
                 Graph (*make)(const ImageOptions&)) {
  Options options = image_options("1000", image, "3", smallest);
  options.push_back(dropout_option("before the last layer"));
  return {std::move(name), std::move(text), std::move(options),
          [make](const Values& v) { return make(image_values(v)); }};
}

Entry densenet(int depth, std::vector<std::int64_t> blocks) {
  const std::string name = fmt::format("densenet{}", depth);
  Options options = image_options("1000", "224", "3", 29);
  options.push_back(dropout_option("before the last layer"));
  return {name, fmt::format("densely connected network with {} layers of weights", depth), std::move(options),
          [name, blocks = std::move(blocks)](const Values& v) { return make_densenet(name, blocks, image_values(v)); }};
}

Entry unet() {
  return {"unet", "encoder and decoder with skip connections, a class for each pixel; planned, not trained",
          image_options("2", "224", "3", 16), [](const Values& v) {
            return make_unet(
                {.classes = v.integer("classes"), .image = v.integer("image"), .channels = v.integer("channels")});
          }};
}

}  // namespace

std::vector<Entry> branching_entries() {
  return {
      classifier("googlenet", "Inception v1 with batch norm, without auxiliary classifiers", "224", 17, make_googlenet),
      classifier("inception_v3", "Inception v3, without its auxiliary classifier", "299", 75, make_inception_v3),
      densenet(121, {6, 12, 24, 16}),
      densenet(169, {6, 12, 32, 32}),
      densenet(201, {6, 12, 48, 32}),
      unet(),
      classifier("nasnet_mobile", "NASNet-A (4 @ 1056): cells of separable convolutions; planned, not trained", "224",
                 32, make_nasnet_mobile)};
}

}  // namespace millrace::models
