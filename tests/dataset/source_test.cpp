// Sources feed what INTERFACES 9 says: normalised images, windows of text, synthetic numbers; and check their file.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "base/random.h"
#include "dataset/convert.h"
#include "dataset/hdf5_source.h"
#include "dataset/synthetic_source.h"
#include "tests/dataset/foreign_bytes.h"
#include "tests/storage/expect_error.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::dataset {
namespace {

using storage::expect_error;
using storage::File;
using storage::Group;
using storage::NumberType;
using storage::TemporaryFolder;
using ::testing::ElementsAre;
using Ids = std::vector<std::int64_t>;

TEST(Hdf5Source, FeedsNormalisedImages) {
  const TemporaryFolder folder;
  write_small_idx(folder.path());
  convert(std::vector{folder.path()}, folder / "d.h5", {});
  const Hdf5Source source(folder / "d.h5");
  EXPECT_THAT(source.format().shape, ElementsAre(1, 1, 2));
  EXPECT_EQ(source.format().kind, InputKind::real);
  EXPECT_EQ(source.format().classes, 3);
  EXPECT_EQ(source.samples(Split::train), 4);
  EXPECT_EQ(source.samples(Split::test), 2);
  std::vector<float> inputs(3 * 2);
  std::vector<std::int32_t> labels(3);
  source.read_inputs(Split::train, Ids{3, 0, 3}, inputs.data());
  source.read_labels(Split::train, Ids{3, 0, 3}, labels.data());
  EXPECT_THAT(labels, ElementsAre(2, 0, 2));
  const double mean = source.description().mean[0], deviation = source.description().deviation[0];
  const std::vector<int> pixels{50, 60, 0, 255, 50, 60};
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    EXPECT_FLOAT_EQ(inputs[i], static_cast<float>((pixels[i] / 255.0 - mean) / deviation));
  }
  source.read_inputs(Split::test, Ids{1}, inputs.data());
  EXPECT_FLOAT_EQ(inputs[1], static_cast<float>((4 / 255.0 - mean) / deviation));
  expect_error<InvalidInput>([&] { source.read_labels(Split::test, Ids{2}, labels.data()); },
                             {"d.h5: sample 2 of /test does not exist, there are 2"});
  EXPECT_THROW(source.read_inputs(Split::test, Ids{1}, labels.data()), std::logic_error);
}

TEST(Hdf5Source, FeedsWindowsOfTextWithLabelsShiftedByOne) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "abcdefghijklmnopqrstuvwxyzabcdefghijklmn";  // 40 bytes: 36 and 4
  convert(std::vector{folder / "a.txt"}, folder / "d.h5", {});
  const Hdf5Source source(folder / "d.h5", 3);
  EXPECT_EQ(source.format().kind, InputKind::index);
  EXPECT_THAT(source.format().shape, ElementsAre(3));
  EXPECT_EQ(source.format().labels_per_sample, 3);
  EXPECT_EQ(source.format().classes, 26);
  EXPECT_EQ(source.samples(Split::train), 11);  // token 36 would be the last label of a twelfth
  EXPECT_EQ(source.samples(Split::test), 1);
  std::vector<std::int32_t> tokens(6), labels(6);
  source.read_inputs(Split::train, Ids{10, 0}, tokens.data());
  source.read_labels(Split::train, Ids{10, 0}, labels.data());
  EXPECT_THAT(tokens, ElementsAre(4, 5, 6, 0, 1, 2));
  EXPECT_THAT(labels, ElementsAre(5, 6, 7, 1, 2, 3));
  expect_error<InvalidInput>([&] { Hdf5Source(folder / "d.h5", 4); }, {"/test/tokens", "4 tokens are too few"});
  expect_error<InvalidInput>([&] { Hdf5Source(folder / "d.h5", std::nullopt); }, {"how many tokens"});
  expect_error<InvalidInput>([&] { Hdf5Source(folder / "d.h5", 0); }, {"at least one token"});
}

/// A file of 2-feature samples, with one thing wrong.
struct FeatureFile {
  std::string kind = "features";
  int format = 1;
  std::vector<std::int64_t> train_labels{0, 1, 0};
  std::vector<std::int64_t> input_shape{3, 2};
  std::vector<std::string> classes{"a", "b"};

  void write(const std::filesystem::path& path) const {
    File file = File::make(path);
    file.set("millrace_data", format);
    file.set("name", "x");
    file.set("kind", kind);
    file.set("classes", classes);
    for (const char* split : {"train", "test"}) {
      Group group = file.make_group(split);
      std::vector<float> values{1, 2, 3, 4, 5, 6};
      group.make_dataset("inputs", NumberType::float32, input_shape, {"1", "values"}).write<float>(values);
      const Ids count{static_cast<std::int64_t>(train_labels.size())};
      group.make_dataset("labels", NumberType::int64, count, {"1", "classes"}).write<std::int64_t>(train_labels);
    }
    file.close();
  }
};

void expect_refused(const FeatureFile& content, const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  content.write(folder / "bad.h5");
  expect_error<InvalidInput>([&] { Hdf5Source(folder / "bad.h5"); }, words);
}

TEST(Hdf5Source, FeedsFeaturesAsTheyAre) {
  const TemporaryFolder folder;
  FeatureFile{}.write(folder / "d.h5");
  const Hdf5Source source(folder / "d.h5");
  std::vector<float> inputs(4);
  source.read_inputs(Split::train, Ids{2, 1}, inputs.data());
  EXPECT_THAT(inputs, ElementsAre(5, 6, 3, 4));
  expect_error<InvalidInput>([&] { Hdf5Source(folder / "d.h5", 8); }, {"holds features, the model reads text"});
}

TEST(Hdf5Source, RefusesWhatIsNotItsFormat) {
  expect_refused({.format = 2}, {"bad.h5: format 2 of data files is not known, only 1"});
  expect_refused({.kind = "feature"}, {"unknown kind 'feature' (did you mean 'features'?)"});
  expect_refused({.kind = "images"},
                 {"/train/inputs: must be uint8 [samples, channels, height, width], found float32"});
  expect_refused({.classes = {}}, {"'classes' is empty"});
  expect_refused({.train_labels = {0, 2, 0}}, {"bad.h5: /train/labels: label 2 of sample 1 is outside 0 .. 1"});
  expect_refused({.train_labels = {0, 1, -1}}, {"label -1 of sample 2"});
  expect_refused({.train_labels = {0, 1}}, {"/train: 3 inputs but 2 labels"});
  expect_refused({.input_shape = {6}}, {"must be float32 [samples, features]"});
  const TemporaryFolder folder;
  { File::make(folder / "results.h5").set("kind", "measured"); }
  expect_error<InvalidInput>([&] { Hdf5Source(folder / "results.h5"); },
                             {"results.h5: not a data file of millrace: attribute 'millrace_data' is missing"});
  expect_error<InvalidInput>([&] { Hdf5Source(folder / "none.h5"); }, {"none.h5: no such file"});
}

TEST(Hdf5Source, RefusesATruncatedFile) {
  const TemporaryFolder folder;
  FeatureFile{}.write(folder / "d.h5");
  std::filesystem::resize_file(folder / "d.h5", std::filesystem::file_size(folder / "d.h5") / 2);
  expect_error<InvalidInput>([&] { Hdf5Source(folder / "d.h5"); }, {"d.h5: truncated"});
}

TEST(Hdf5Source, TheSampleThatShipsIsBalanced) {
  const Hdf5Source source(MILLRACE_SOURCE_DIR "/data/fashion-mnist-sample.h5");
  EXPECT_THAT(source.format().shape, ElementsAre(1, 28, 28));
  for (const auto& [split, count] : {std::pair{Split::train, 1000}, std::pair{Split::test, 500}}) {
    ASSERT_EQ(source.samples(split), count);
    Ids ids(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
    std::vector<std::int32_t> labels(ids.size());
    source.read_labels(split, ids, labels.data());
    for (std::int32_t c = 0; c < 10; ++c) EXPECT_EQ(std::count(labels.begin(), labels.end(), c), count / 10);
  }
  EXPECT_EQ(source.description().licence, "MIT, Copyright (c) 2017 Zalando SE");
}

TEST(SyntheticSource, IsAFunctionOfSeedAndSample) {
  const SyntheticSource source(7, {InputKind::real, {3, 2}, 1, 10});
  EXPECT_EQ(source.samples(Split::train), 50000);
  EXPECT_EQ(source.samples(Split::test), 1000);
  std::vector<float> inputs(12), alone(6), test(6);
  source.read_inputs(Split::train, Ids{5, 70000}, inputs.data());
  source.read_inputs(Split::train, Ids{70000}, alone.data());
  source.read_inputs(Split::test, Ids{5}, test.data());
  EXPECT_EQ(std::vector<float>(inputs.begin() + 6, inputs.end()), alone);
  // Five numbers a draw, each the quantile in the middle of one of 4096 parts, by the part's number.
  const auto below = [](float x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  const auto part = [](const Random& random, int i) { return (random.bits(0) >> (12 * i)) & 4095; };
  const Random of_train(7, "synthetic.input", 0, 70000);
  const Random of_test(7, "synthetic.input", 0, (std::uint64_t{1} << 40) + 5);
  EXPECT_NEAR(below(alone[4]) * 4096, static_cast<double>(part(of_train, 4)) + 0.5, 1e-3);
  EXPECT_NEAR(below(test[0]) * 4096, static_cast<double>(part(of_test, 0)) + 0.5, 1e-3);
  std::vector<std::int32_t> labels(2000);
  Ids ids(labels.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  source.read_labels(Split::train, ids, labels.data());
  for (std::int32_t c = 0; c < 10; ++c) {
    EXPECT_NEAR(static_cast<double>(std::count(labels.begin(), labels.end(), c)), 200, 60);
  }
}

TEST(SyntheticSource, MakesNumbersOfTheNormalDistribution) {
  const SyntheticSource source(7, {InputKind::real, {1000}, 1, 10});
  std::vector<float> values(100'000);
  Ids ids(100);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  source.read_inputs(Split::train, ids, values.data());
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1, 0.02);
  std::sort(values.begin(), values.end());
  EXPECT_NEAR(values[84'134], 1, 0.02);
  EXPECT_NEAR(values[2'275], -2, 0.04);
}

TEST(SyntheticSource, MakesTokensOfTheVocabulary) {
  const SyntheticSource source(7, {InputKind::index, {64}, 64, 50});
  std::vector<std::int32_t> tokens(128), labels(128);
  source.read_inputs(Split::train, Ids{1, 2}, tokens.data());
  source.read_labels(Split::train, Ids{1, 2}, labels.data());
  EXPECT_THAT(tokens, ::testing::Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(50))));
  EXPECT_THAT(labels, ::testing::Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(50))));
  EXPECT_NE(tokens, labels);
  std::vector<float> real(128);
  EXPECT_THROW(source.read_inputs(Split::train, Ids{1, 2}, real.data()), std::logic_error);
  EXPECT_THROW(SyntheticSource(7, {InputKind::index, {64}, 64, 0}), InvalidInput);
}

}  // namespace
}  // namespace millrace::dataset
