// Letters of dimensions (METHODS 7), as properties of every kind and as the table's own values.
#include <gmock/gmock.h>

#include <cctype>
#include <set>

#include "tests/graph/samples.h"

namespace millrace {
namespace {

using testing::ElementsAre;

Letters letters_of(const test::Sample& sample) {
  return op_schema(sample.kind).letters(sample.attributes, test::operand_shapes(sample));
}

/// Every dimension of every operand as (letter, extent); the batch axis has extent 0.
std::vector<std::pair<char, std::int64_t>> dimensions(const Letters& letters, const OperandShapes& shapes) {
  std::vector<std::pair<char, std::int64_t>> all;
  const auto collect = [&all](const std::string& word, Dims dims, bool batched) {
    if (batched) dims.insert(dims.begin(), 0);
    ASSERT_EQ(word.size(), dims.size()) << word;
    for (std::size_t i = 0; i < word.size(); ++i) all.emplace_back(word[i], dims[i]);
  };
  for (std::size_t i = 0; i < shapes.inputs.size(); ++i) collect(letters.inputs.at(i), shapes.inputs[i].dims, true);
  for (std::size_t i = 0; i < shapes.outputs.size(); ++i) collect(letters.outputs.at(i), shapes.outputs[i].dims, true);
  for (std::size_t i = 0; i < shapes.parameters.size(); ++i) {
    collect(letters.parameters.at(i), shapes.parameters[i], false);
  }
  return all;
}

class EveryKind : public testing::TestWithParam<test::Sample> {};

TEST_P(EveryKind, SameLetterSameExtent) {
  const OperandShapes shapes = test::operand_shapes(GetParam());
  const Letters letters = letters_of(GetParam());
  EXPECT_EQ(letters.inputs.size(), shapes.inputs.size());
  EXPECT_EQ(letters.outputs.size(), shapes.outputs.size());
  EXPECT_EQ(letters.parameters.size(), shapes.parameters.size());
  std::map<char, std::int64_t> extent_of;
  for (const auto& [letter, extent] : dimensions(letters, shapes)) {
    const auto parts = letters.parts.find(letter);
    if (parts != letters.parts.end()) {
      EXPECT_EQ(extent % parts->second, 0) << letter;
      continue;
    }
    EXPECT_EQ(extent_of.emplace(letter, extent).first->second, extent) << letter;
  }
  EXPECT_EQ(extent_of.at('n'), 0) << "only the batch axis is called n";
}

TEST_P(EveryKind, OperandsNameEachLetterOnceAndOutputsOnlyWhatInputsHaveOrMayNotBeSplit) {
  const Letters letters = letters_of(GetParam());
  std::set<char> sources;
  for (const auto* words : {&letters.inputs, &letters.parameters, &letters.outputs}) {
    for (const std::string& word : *words) {
      EXPECT_EQ(std::set<char>(word.begin(), word.end()).size(), word.size()) << word;
      if (words != &letters.outputs) sources.insert(word.begin(), word.end());
    }
  }
  for (const std::string& word : letters.outputs) {
    for (const char letter : word) {
      const bool splits = std::islower(static_cast<unsigned char>(letter)) != 0;
      EXPECT_TRUE(!splits || sources.count(letter) == 1U) << letter;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, EveryKind, testing::ValuesIn(test::samples()),
                         [](const testing::TestParamInfo<test::Sample>& row) {
                           return row.param.kind + "_" + std::to_string(row.index);
                         });

TEST(Letters, SamplesHoldEveryKind) {
  std::set<std::string> sampled;
  for (const test::Sample& sample : test::samples()) sampled.insert(sample.kind);
  std::set<std::string> kinds;
  for (const OpSchema* row : op_schemas()) {
    if (!row->explicit_figures) kinds.insert(row->name);
  }
  EXPECT_EQ(sampled, kinds);
}

/// Letters of the `number`-th sample of the kind.
Letters letters(std::string_view kind, int number = 0) {
  for (const test::Sample& sample : test::samples()) {
    if (sample.kind == kind && number-- == 0) return letters_of(sample);
  }
  return {};
}

TEST(Letters, OfTheTable) {
  EXPECT_THAT(letters("linear").inputs, ElementsAre("nk"));
  EXPECT_THAT(letters("linear").parameters, ElementsAre("ok", "o"));
  EXPECT_THAT(letters("linear").outputs, ElementsAre("no"));
  EXPECT_THAT(letters("conv2d").inputs, ElementsAre("ncHW"));
  EXPECT_THAT(letters("conv2d").parameters, ElementsAre("ocKL", "o"));
  EXPECT_THAT(letters("conv2d").outputs, ElementsAre("noPQ"));
  EXPECT_THAT(letters("batch_norm").outputs, ElementsAre("ncHW"));
  EXPECT_THAT(letters("batch_matmul").inputs, ElementsAre("namk", "nakp"));
  EXPECT_THAT(letters("batch_matmul").outputs, ElementsAre("namp"));
  EXPECT_THAT(letters("embedding").parameters, ElementsAre("vh"));
  EXPECT_THAT(letters("embedding").outputs, ElementsAre("nah"));
  EXPECT_THAT(letters("softmax").inputs, ElementsAre("naD"));
  EXPECT_THAT(letters("transpose").outputs, ElementsAre("ncab"));
}

TEST(Letters, ConvolutionsThatMixChannelsOtherwise) {
  EXPECT_THAT(letters("depthwise_conv2d").inputs, ElementsAre("ncHW"));
  EXPECT_THAT(letters("depthwise_conv2d").parameters, ElementsAre("cAKL", "c"));
  EXPECT_THAT(letters("depthwise_conv2d").outputs, ElementsAre("ncPQ"));
  EXPECT_THAT(letters("conv_transpose2d").parameters, ElementsAre("coKL", "o"));
  EXPECT_THAT(letters("conv_transpose2d").outputs, ElementsAre("noPQ"));
}

TEST(Letters, OfSequences) {
  EXPECT_THAT(letters("lstm").parameters, ElementsAre("GI", "GH", "G", "G"));
  EXPECT_THAT(letters("lstm").outputs, ElementsAre("nTH"));
  EXPECT_EQ(letters("lstm", 1).parameters.size(), 8U);
  EXPECT_THAT(letters("additive_attention").inputs, ElementsAre("ntU", "nSU", "nSv"));
  EXPECT_THAT(letters("additive_attention").outputs, ElementsAre("ntv"));
  EXPECT_THAT(letters("segment_embedding").parameters, ElementsAre("Sh"));
  EXPECT_THAT(letters("select", 1).inputs, ElementsAre("naAb"));
  EXPECT_THAT(letters("select", 1).outputs, ElementsAre("nab"));
}

TEST(Letters, HeadsSplitWhole) {
  EXPECT_THAT(letters("attention").inputs, ElementsAre("nTh"));
  EXPECT_EQ(letters("attention").parts, (std::map<char, std::int64_t>{{'h', 2}}));
}

TEST(Letters, OnlyTheMajorFactorOfAReshapeCarriesASplit) {
  const Letters pair = letters("reshape");  // [6, 4] -> [3, 8]
  EXPECT_THAT(pair.inputs, ElementsAre("naB"));
  EXPECT_THAT(pair.outputs, ElementsAre("naA"));
  EXPECT_EQ(pair.parts, (std::map<char, std::int64_t>{{'a', 3}}));

  const Letters runs = letters("reshape", 1);  // [8, 1, 3, 3] -> [4, 2, 1, 9]
  EXPECT_THAT(runs.inputs, ElementsAre("naBbD"));
  EXPECT_THAT(runs.outputs, ElementsAre("naACb"));
  EXPECT_EQ(runs.parts, (std::map<char, std::int64_t>{{'a', 4}, {'b', 3}}));

  EXPECT_THAT(letters("reshape", 2).inputs, ElementsAre("nAC"));  // [2, 3] -> [3, 2] shares nothing
  EXPECT_EQ(letters("flatten").parts, (std::map<char, std::int64_t>{{'a', 6}}));
  EXPECT_TRUE(letters("flatten", 1).parts.empty());  // [6, 1, 1] -> [6] is the same dimension
}

TEST(Letters, RunOutOnlyForConcatOfManyExtents) {
  OperandShapes shapes{.inputs = {}, .outputs = {{.dims = {351}}}, .parameters = {}};
  for (std::int64_t extent = 1; extent <= 26; ++extent) shapes.inputs.push_back({.dims = {extent}});
  const OpSchema& concat = op_schema("concat");
  EXPECT_ANY_THROW(concat.letters({{"axis", 0}}, shapes));
  shapes.inputs.back() = {.dims = {25}};
  EXPECT_EQ(concat.letters({{"axis", 0}}, shapes).inputs.back(), "nY");
}

}  // namespace
}  // namespace millrace
