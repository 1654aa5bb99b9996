// Every row builds, and what does not fit is refused with its reason.
#include "models/registry.h"

#include <gmock/gmock.h>

#include "base/errors.h"

namespace millrace::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(std::string_view name, const std::map<std::string, std::string>& written) {
  try {
    make(name, written);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "accepted";
}

class EveryModel : public testing::TestWithParam<std::string> {};

/// Made-up graphs have neither data nor loss.
bool is_network(const std::string& name) { return name != "synthetic"; }

TEST_P(EveryModel, BuildsFromItsDefaults) {
  const Entry& entry = by_name(GetParam());
  const Graph graph = entry.make(config::defaults(entry.options));
  EXPECT_EQ(graph.name(), entry.name);
  EXPECT_FALSE(entry.description.empty());
  EXPECT_EQ(graph.digest(), make(GetParam()).digest());
  if (!is_network(GetParam())) return;
  EXPECT_EQ(graph.loss(), graph.size() - 1);
  EXPECT_EQ(graph.op(graph.loss()).name, "loss");
  EXPECT_EQ(graph.find_tensor("input"), graph.inputs()[0]);
  EXPECT_EQ(graph.find_tensor("labels"), graph.labels()[0]);
  for (const Operator& op : graph.operators()) EXPECT_FALSE(op.layer.empty()) << op.name;
}

TEST_P(EveryModel, LeavesNoOutputUnread) {
  const Graph graph = make(GetParam());
  for (OpId id = 0; id + 1 < graph.size(); ++id) {
    for (const TensorId output : graph.op(id).outputs)
      EXPECT_FALSE(graph.consumers(output).empty()) << graph.op(id).name;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Entry& entry : registry()) all.push_back(entry.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryModel, testing::ValuesIn(names()),
                         [](const testing::TestParamInfo<std::string>& row) { return row.param; });

TEST(Options, SmallNetworksForTests) {
  const Graph resnet =
      make("resnet", {{"blocks", "[1, 2, 1]"}, {"bottleneck", "true"}, {"image", "32"}, {"channels", "3"}});
  EXPECT_EQ(resnet.tensor(resnet.find_tensor("layer3.0.relu3.output")).shape.dims, (Dims{128, 8, 8}));
  const Graph deep_stem = make("resnet", {{"stem", "imagenet"}, {"image", "32"}});
  EXPECT_EQ(deep_stem.tensor(deep_stem.find_tensor("maxpool.output")).shape.dims, (Dims{8, 8, 8}));
  const Graph vgg = make("vgg11", {{"image", "32"}, {"classes", "10"}});
  EXPECT_EQ(vgg.tensor(vgg.find_tensor("classifier.0.weight")).shape.dims, (Dims{4096, 512}));
  EXPECT_EQ(make("resnet18", {{"image", "8"}}).parameter_count(), 11'689'512);
}

// What a model says of itself agrees with whether its kinds have kernels.
TEST_P(EveryModel, SaysWhetherItIsPlannedOnly) {
  const bool planned_only = by_name(GetParam()).description.find("not train") != std::string::npos ||
                            by_name(GetParam()).description.find("not to train") != std::string::npos;
  EXPECT_EQ(make(GetParam()).trainable(), !planned_only);
}

TEST(Options, ImagesAreAsSmallAsTheOptionSays) {
  for (const Entry& entry : registry()) {
    for (const config::Option& option : entry.options) {
      if (option.name != "image") continue;
      const std::int64_t smallest = std::get<config::Integer>(option.type).minimum;
      EXPECT_GT(make(entry.name, {{"image", std::to_string(smallest)}}).size(), 0) << entry.name;
    }
  }
}

TEST(Options, BertHeads) {
  const Graph masked = make("bert", {{"layers", "1"}, {"sequence", "16"}});
  EXPECT_EQ(masked.tensor(masked.labels()[0]).shape.dims, (Dims{16}));
  const Graph classes =
      make("bert", {{"layers", "1"}, {"sequence", "16"}, {"head", "classification"}, {"classes", "3"}});
  EXPECT_EQ(classes.tensor(classes.find_tensor("classifier.output")).shape.dims, (Dims{3}));
  EXPECT_EQ(classes.tensor(classes.labels()[0]).shape.dims, (Dims{}));
}

TEST(Refusals, SayWhatIsAllowed) {
  EXPECT_THAT(refusal("resnet5", {}), AllOf(HasSubstr("unknown model 'resnet5'"), HasSubstr("did you mean 'resnet50'"),
                                            HasSubstr("valid: mlp, lenet")));
  EXPECT_THAT(refusal("mlp", {{"hiden", "[3]"}}), HasSubstr("did you mean 'hidden'"));
  EXPECT_THAT(refusal("vgg16", {{"image", "16"}}), AllOf(HasSubstr("option 'image' of model vgg16"), HasSubstr("32")));
  EXPECT_THAT(refusal("lenet", {{"image", "15"}}), HasSubstr("16"));
  EXPECT_THAT(refusal("gpt", {{"width", "10"}, {"heads", "4"}}),
              AllOf(HasSubstr("operator 'blocks.0.attention.core' (attention)"), HasSubstr("found 4"),
                    HasSubstr("a divisor of the width 10: 1, 2, 5, 10")));
  EXPECT_THAT(refusal("unet", {{"image", "572"}}), AllOf(HasSubstr("option 'image'"), HasSubstr("multiple of 16")));
  EXPECT_THAT(refusal("gnmt", {{"layers", "9"}}), AllOf(HasSubstr("option 'layers'"), HasSubstr("even")));
  EXPECT_THAT(refusal("synthetic", {{"shape", "tree"}}), HasSubstr("random_dag"));
  EXPECT_THAT(refusal("gpt", {{"width", "1000000000"}, {"heads", "1"}}), HasSubstr("2^41"));
}

}  // namespace
}  // namespace millrace::models
