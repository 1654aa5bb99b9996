// The table of built-in networks and their options (INTERFACES 9, model options' defaults).
#include "models/registry.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "models/families.h"

namespace millrace::models {
namespace {

using config::Boolean;
using config::Integer;
using config::IntegerList;
using config::OneOf;
using config::Option;
using config::Options;
using config::Real;
using config::Values;

// Keeps every product of two sizes far inside 64 bits; GraphBuilder refuses tensors that are too large.
constexpr std::int64_t kLargest = 1'000'000'000;

Option positive(std::string name, std::string text, std::string standard, std::int64_t minimum = 1,
                std::int64_t maximum = kLargest) {
  return {std::move(name), std::move(text), Integer{minimum, maximum}, std::move(standard)};
}

Options image_options(std::string classes, std::string image, std::string channels, std::int64_t smallest = 1) {
  return {positive("classes", "number of classes", std::move(classes)),
          positive("image", "height and width in pixels", std::move(image), smallest, 65536),
          positive("channels", "channels of an image", std::move(channels), 1, 65536)};
}

Option dropout_option(std::string where) {
  return {"dropout", "probability of dropout " + where, Real{0.0, 0.999}, "0"};
}

Entry mlp() {
  return {"mlp",
          "multi-layer perceptron on feature vectors",
          {positive("inputs", "features of a sample", "784"),
           {"hidden", "widths of the hidden layers", IntegerList{1, kLargest}, "[512, 512]"},
           positive("classes", "number of classes", "10")},
          [](const Values& v) { return make_mlp(v.integer("inputs"), v.integers("hidden"), v.integer("classes")); }};
}

Entry lenet() {
  return {"lenet", "two convolutions and two linear layers for small images",
          image_options("10", "28", "1", 16),  // two 5x5 convolutions and pools leave a pixel of 16
          [](const Values& v) { return make_lenet(v.integer("classes"), v.integer("image"), v.integer("channels")); }};
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

Entry gpt() {
  return {"gpt",
          "decoder-only transformer as GPT-2",
          {positive("layers", "number of blocks", "12", 1, 100'000),
           positive("width", "features of a position", "768"),
           positive("heads", "attention heads; a divisor of the width", "12"),
           positive("sequence", "tokens of a sample", "1024"),
           positive("vocabulary", "number of tokens that there are", "50257"),
           {"tied", "the head shares the weight of the token embedding", Boolean{}, "true"},
           dropout_option("after the embedding and each projection onto the residual path")},
          [](const Values& v) {
            return make_gpt({.layers = v.integer("layers"),
                             .width = v.integer("width"),
                             .heads = v.integer("heads"),
                             .sequence = v.integer("sequence"),
                             .vocabulary = v.integer("vocabulary"),
                             .tied = v.boolean("tied"),
                             .dropout = v.real("dropout")});
          }};
}

}  // namespace

const std::vector<Entry>& registry() {
  static const std::vector<Entry> entries{
      mlp(),
      lenet(),
      vgg(11, {1, 1, 2, 2, 2}),
      vgg(16, {2, 2, 3, 3, 3}),
      vgg(19, {2, 2, 4, 4, 4}),
      resnet(18, {2, 2, 2, 2}, false),
      resnet(34, {3, 4, 6, 3}, false),
      resnet(50, {3, 4, 6, 3}, true),
      resnet(101, {3, 4, 23, 3}, true),
      resnet(152, {3, 8, 36, 3}, true),
      small_resnet(),
      gpt(),
  };
  return entries;
}

const Entry& by_name(std::string_view name) {
  std::vector<std::string> valid;
  for (const Entry& entry : registry()) {
    if (entry.name == name) return entry;
    valid.push_back(entry.name);
  }
  throw InvalidInput(unknown_name("model", name, valid));
}

Graph make(std::string_view name, const std::map<std::string, std::string>& written) {
  const Entry& entry = by_name(name);
  Values values = config::defaults(entry.options);
  for (const auto& [key, text] : written) {
    const Option* option = nullptr;
    std::vector<std::string> valid;
    for (const Option& candidate : entry.options) {
      valid.push_back(candidate.name);
      if (candidate.name == key) option = &candidate;
    }
    if (option == nullptr) throw InvalidInput(unknown_name(fmt::format("option of model {}", entry.name), key, valid));
    try {
      values.set(key, config::parse_value(option->type, text));
    } catch (const InvalidInput& error) {
      throw InvalidInput(fmt::format("option '{}' of model {}: {}", key, entry.name, error.what()));
    }
  }
  return entry.make(values);
}

}  // namespace millrace::models
