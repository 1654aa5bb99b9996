// Foreign files become data files with exactly the bytes that went in.
#include "dataset/convert.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "dataset/hdf5_source.h"
#include "storage/file.h"
#include "tests/dataset/foreign_bytes.h"
#include "tests/storage/expect_error.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::dataset {
namespace {

using storage::expect_error;
using storage::TemporaryFolder;
using ::testing::ElementsAre;
using Path = std::filesystem::path;

Converted convert_all(const std::vector<Path>& inputs, const Path& output, const ConvertOptions& options = {}) {
  return convert(inputs, output, options);
}

template <class T>
std::vector<T> numbers(const storage::File& file, const std::string& group, const std::string& name) {
  const storage::Dataset data = file.group(group).dataset(name);
  std::vector<T> values(static_cast<std::size_t>(data.rows() * data.row_size()));
  data.read(std::span(values));
  return values;
}

TEST(Convert, IdxFolder) {
  const TemporaryFolder folder;
  write_small_idx(folder.path());
  const Converted result = convert_all({folder.path()}, folder / "small.h5");
  EXPECT_EQ(result.train, 4);
  EXPECT_EQ(result.test, 2);
  const storage::File file = storage::File::open(folder / "small.h5");
  EXPECT_EQ(file.integer("millrace_data"), 1);
  EXPECT_EQ(file.text("name"), "small");
  EXPECT_EQ(file.text("kind"), "images");
  EXPECT_THAT(file.texts("classes"), ElementsAre("0", "1", "2"));
  EXPECT_EQ(file.text("licence"), "unknown");
  EXPECT_EQ(file.text("source"), folder.path().string());
  EXPECT_THAT(file.group("train").dataset("inputs").shape(), ElementsAre(4, 1, 1, 2));
  EXPECT_EQ(file.group("train").dataset("inputs").type(), storage::NumberType::uint8);
  EXPECT_EQ(file.group("train").dataset("labels").type(), storage::NumberType::int64);
  EXPECT_THAT(numbers<int>(file, "train", "inputs"), ElementsAre(0, 255, 10, 20, 30, 40, 50, 60));
  EXPECT_THAT(numbers<int>(file, "train", "labels"), ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(numbers<int>(file, "test", "inputs"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(numbers<int>(file, "test", "labels"), ElementsAre(2, 0));
  // Mean 465 / 8; mean square 74125 / 8.
  EXPECT_THAT(file.reals("mean"), ElementsAre(::testing::DoubleNear(58.125 / 255, 1e-12)));
  const double deviation = std::sqrt(74125.0 / 8 - 58.125 * 58.125) / 255;
  EXPECT_THAT(file.reals("std"), ElementsAre(::testing::DoubleNear(deviation, 1e-12)));
  EXPECT_TRUE(file.group("train").dataset("labels").has("unit"));
  EXPECT_TRUE(file.group("train").dataset("labels").has("description"));
}

TEST(Convert, IdxWithNamesThatSayNothingAndChannels) {
  const TemporaryFolder folder;
  write_bytes(folder / "a", idx_bytes({2, 3, 1, 1}, {1, 2, 3, 4, 5, 6}));
  write_bytes(folder / "b", idx_bytes({2}, {0, 1}));
  write_bytes(folder / "a-test", idx_bytes({1, 3, 1, 1}, {7, 8, 9}));
  write_bytes(folder / "b-test", idx_bytes({1}, {1}));
  ConvertOptions options;
  options.name = "dots";
  options.classes = {"dark", "light"};
  options.licence = "CC0";
  options.source = "made by hand";
  const Converted result =
      convert_all({folder / "b", folder / "a-test", folder / "b-test", folder / "a"}, folder / "d.h5", options);
  EXPECT_EQ(result.description.name, "dots");
  EXPECT_THAT(result.description.classes, ElementsAre("dark", "light"));
  EXPECT_THAT(result.description.mean, ElementsAre(2.5 / 255, 3.5 / 255, 4.5 / 255));
  const storage::File file = storage::File::open(folder / "d.h5");
  EXPECT_EQ(file.text("licence"), "CC0");
  EXPECT_EQ(file.text("source"), "made by hand");
  EXPECT_THAT(numbers<int>(file, "train", "inputs"), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Convert, Cifar10) {
  const TemporaryFolder folder;
  Bytes first = cifar10_record(3), second = cifar10_record(9);
  first.insert(first.end(), second.begin(), second.end());
  write_bytes(folder / "data_batch_1.bin", first);
  write_bytes(folder / "data_batch_2.bin", cifar10_record(0));
  write_bytes(folder / "test_batch.bin", cifar10_record(5));
  write_bytes(folder / "batches.meta.txt", {'x'});  // not data
  const Converted result = convert_all({folder.path()}, folder / "c.h5");
  EXPECT_EQ(result.train, 3);
  EXPECT_EQ(result.test, 1);
  const storage::File file = storage::File::open(folder / "c.h5");
  EXPECT_EQ(file.text("name"), "cifar-10");
  EXPECT_EQ(file.texts("classes").at(9), "truck");
  EXPECT_THAT(file.group("train").dataset("inputs").shape(), ElementsAre(3, 3, 32, 32));
  EXPECT_THAT(numbers<int>(file, "train", "labels"), ElementsAre(3, 9, 0));
  const std::vector<int> pixels = numbers<int>(file, "train", "inputs");
  EXPECT_EQ(pixels.at(0), 3);
  EXPECT_EQ(pixels.at(3072 + 1), 10);
  EXPECT_EQ(pixels.at(2 * 3072 + 255), 255);
  EXPECT_EQ(file.reals("mean").size(), 3U);
}

TEST(Convert, Text) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "hello ";
  std::ofstream(folder / "b.txt") << "w\xC3\xB6rld\nhello again";
  const Converted result = convert_all({folder / "a.txt", folder / "b.txt"}, folder / "t.h5");
  EXPECT_EQ(result.train, 22);  // 24 bytes, the last tenth rounded down is 2
  EXPECT_EQ(result.test, 2);
  const storage::File file = storage::File::open(folder / "t.h5");
  EXPECT_EQ(file.text("kind"), "text");
  EXPECT_THAT(file.texts("classes"), ElementsAre("\\x0a", " ", "a", "d", "e", "g", "h", "i", "l", "n", "o", "r", "w",
                                                 "\\xb6", "\\xc3"));
  EXPECT_EQ(file.group("train").dataset("tokens").type(), storage::NumberType::int32);
  const std::vector<int> train = numbers<int>(file, "train", "tokens");
  EXPECT_THAT(std::vector<int>(train.begin(), train.begin() + 10), ElementsAre(6, 4, 8, 8, 10, 1, 12, 14, 13, 11));
  EXPECT_THAT(numbers<int>(file, "test", "tokens"), ElementsAre(7, 9));
}

TEST(Convert, LimitsAreBalancedAndKeepTheOrder) {
  const TemporaryFolder folder;
  write_bytes(folder / "train-images-idx3-ubyte", idx_bytes({7, 1, 1}, {10, 11, 12, 13, 14, 15, 16}));
  write_bytes(folder / "train-labels-idx1-ubyte", idx_bytes({7}, {1, 1, 0, 1, 0, 0, 1}));
  write_bytes(folder / "t10k-images-idx3-ubyte", idx_bytes({2, 1, 1}, {1, 2}));
  write_bytes(folder / "t10k-labels-idx1-ubyte", idx_bytes({2}, {1, 1}));
  ConvertOptions options;
  options.train_limit = 3;
  EXPECT_EQ(convert_all({folder.path()}, folder / "d.h5", options).train, 3);
  const storage::File file = storage::File::open(folder / "d.h5");
  EXPECT_THAT(numbers<int>(file, "train", "inputs"), ElementsAre(10, 12, 14));
  EXPECT_THAT(numbers<int>(file, "train", "labels"), ElementsAre(1, 0, 0));
  options.test_limit = 1;
  expect_error<InvalidInput>([&] { convert_all({folder.path()}, folder / "e.h5", options); },
                             {"t10k-labels-idx1-ubyte: class 0 has 1 images fewer than a balanced choice of 1 needs"});
  options.test_limit = 0;
  expect_error<InvalidInput>([&] { convert_all({folder.path()}, folder / "e.h5", options); }, {"limit of 0"});
}

TEST(Convert, AnExistingOutputIsKeptUnlessAskedFor) {
  const TemporaryFolder folder;
  write_small_idx(folder.path());
  convert_all({folder.path()}, folder / "d.h5");
  ConvertOptions options;
  options.name = "second";
  expect_error<InvalidInput>([&] { convert_all({folder.path()}, folder / "d.h5", options); },
                             {"d.h5: exists already", "--overwrite"});
  EXPECT_EQ(storage::File::open(folder / "d.h5").text("name"), "d");
  options.overwrite = true;
  convert_all({folder.path()}, folder / "d.h5", options);
  EXPECT_EQ(storage::File::open(folder / "d.h5").text("name"), "second");
}

TEST(Convert, FashionMnistOfThePackage) {
  const Path package = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(package)) GTEST_SKIP() << "package dataset-fashion-mnist is not installed";
  const TemporaryFolder folder;
  const Converted result = convert_all({package}, folder / "f.h5");
  EXPECT_EQ(result.train, 60000);
  EXPECT_EQ(result.test, 10000);
  EXPECT_EQ(result.description.name, "fashion-mnist");
  EXPECT_EQ(result.description.classes.at(9), "Ankle boot");
  EXPECT_NEAR(result.description.mean.at(0), 0.2860, 5e-5);
  EXPECT_NEAR(result.description.deviation.at(0), 0.3530, 5e-5);
  EXPECT_EQ(Hdf5Source(folder / "f.h5").samples(Split::train), 60000);
}

}  // namespace
}  // namespace millrace::dataset
