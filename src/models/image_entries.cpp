// Rows of the registry: perceptrons and networks for images that are one chain, or nearly so.
#include <fmt/format.h>

#include "models/entries.h"
#include "models/families.h"

namespace millrace::models {
namespace {

using config::Boolean;
using config::IntegerList;
using config::OneOf;
using config::Options;
using config::Values;

Entry mlp() {
  return {"mlp",
          "multi-layer perceptron on feature vectors",
          {positive("inputs", "features of a sample", "784"),
           {"hidden", "widths of the hidden layers", IntegerList{1, 1'000'000'000}, "[512, 512]"},
           positive("classes", "number of classes", "10")},
          [](const Values& v) { return make_mlp(v.integer("inputs"), v.integers("hidden"), v.integer("classes")); }};
}

Entry lenet() {
  return {"lenet", "two convolutions and two linear layers for small images",
          image_options("10", "28", "1", 16),  // two 5x5 convolutions and pools leave a pixel of 16
          [](const Values& v) { return make_lenet(v.integer("classes"), v.integer("image"), v.integer("channels")); }};
}

Entry alexnet() {
  Options options = image_options("1000", "224", "3", 63);  // strides and pools leave a pixel of 63
  options.push_back(dropout_option("in the classifier"));
  return {"alexnet", "five convolutions and three linear layers", std::move(options), [](const Values& v) {
            return make_alexnet({.classes = v.integer("classes"),
                                 .image = v.integer("image"),
                                 .channels = v.integer("channels"),
                                 .dropout = v.real("dropout")});
          }};
}

Entry vgg(int depth, std::vector<std::int64_t> convolutions) {
  const std::string name = fmt::format("vgg{}", depth);
  Options options = image_options("1000", "224", "3", 32);  // five pools leave a pixel of 32
  options.push_back(dropout_option("in the classifier"));
  const auto make = [name, convolutions = std::move(convolutions)](const Values& v) {
    return make_vgg(name, {.convolutions = convolutions,
                           .classes = v.integer("classes"),
                           .image = v.integer("image"),
                           .channels = v.integer("channels"),
                           .dropout = v.real("dropout")});
  };
  return {name, fmt::format("VGG with {} layers of weights, without batch norm", depth), std::move(options), make};
}

Entry resnet(int depth, std::vector<std::int64_t> blocks, bool bottleneck) {
  const std::string name = fmt::format("resnet{}", depth);
  const auto make = [name, bottleneck, blocks = std::move(blocks)](const Values& v) {
    return make_resnet(name, {.blocks = blocks,
                              .bottleneck = bottleneck,
                              .classes = v.integer("classes"),
                              .image = v.integer("image"),
                              .channels = v.integer("channels")});
  };
  return {name, fmt::format("residual network with {} layers of weights", depth), image_options("1000", "224", "3"),
          make};
}

Entry small_resnet() {
  Options options = image_options("10", "8", "1");
  options.push_back({"blocks", "residual blocks of each layer", IntegerList{1, 1000}, "[1, 1]"});
  options.push_back(positive("width", "channels of the first layer; they double from layer to layer", "8", 1, 65536));
  options.push_back({"bottleneck", "blocks of 1x1, 3x3, 1x1 convolutions, instead of two 3x3", Boolean{}, "false"});
  options.push_back(
      {"stem", "small: one 3x3 convolution; imagenet: 7x7 and a max-pool", OneOf{{"small", "imagenet"}}, "small"});
  return {"resnet", "residual network of any size, for small images by default", std::move(options),
          [](const Values& v) {
            return make_resnet("resnet", {.blocks = v.integers("blocks"),
                                          .width = v.integer("width"),
                                          .bottleneck = v.boolean("bottleneck"),
                                          .small_stem = v.text("stem") == "small",
                                          .classes = v.integer("classes"),
                                          .image = v.integer("image"),
                                          .channels = v.integer("channels")});
          }};
}

}  // namespace

std::vector<Entry> image_entries() {
  return {mlp(),
          lenet(),
          alexnet(),
          vgg(11, {1, 1, 2, 2, 2}),
          vgg(16, {2, 2, 3, 3, 3}),
          vgg(19, {2, 2, 4, 4, 4}),
          resnet(18, {2, 2, 2, 2}, false),
          resnet(34, {3, 4, 6, 3}, false),
          resnet(50, {3, 4, 6, 3}, true),
          resnet(101, {3, 4, 23, 3}, true),
          resnet(152, {3, 8, 36, 3}, true),
          small_resnet()};
}

}  // namespace millrace::models
