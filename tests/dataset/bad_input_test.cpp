// Every fault of foreign files is named with its file, and leaves no output.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "dataset/convert.h"
#include "tests/dataset/foreign_bytes.h"
#include "tests/storage/expect_error.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::dataset {
namespace {

using storage::expect_error;
using storage::TemporaryFolder;
using Path = std::filesystem::path;

class BadInput : public ::testing::Test {
 protected:
  BadInput() { write_small_idx(folder_.path()); }

  void expect(const std::vector<Path>& inputs, const std::vector<std::string>& words,
              const ConvertOptions& options = {}) {
    expect_error<InvalidInput>([&] { convert(inputs, folder_ / "d.h5", options); }, words);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      EXPECT_NE(entry.path().filename().string().substr(0, 4), "d.h5");
    }
  }

  TemporaryFolder folder_;
  const Path train_images_ = folder_ / "train-images-idx3-ubyte";
  const Path train_labels_ = folder_ / "train-labels-idx1-ubyte";
};

TEST_F(BadInput, Missing) {
  expect({}, {"no input is given"});
  expect({folder_ / "none"}, {"none: no such file or folder"});
  std::filesystem::create_directory(folder_ / "empty");
  expect({folder_ / "empty"}, {"holds no data set that is known", "train-images-idx3-ubyte"});
  expect({folder_.path(), train_images_}, {"give one folder, or files"});
  std::filesystem::remove(train_labels_);
  expect({folder_.path()}, {"no file holds the training labels", "train-labels-idx1-ubyte"});
}

TEST_F(BadInput, TruncatedPlain) {
  std::filesystem::resize_file(train_images_, 20);
  expect({folder_.path()}, {"train-images-idx3-ubyte: truncated: 24 bytes expected, 20 found"});
  std::filesystem::resize_file(train_images_, 7);
  expect({folder_.path()}, {"train-images-idx3-ubyte: truncated: 8 bytes expected, 7 found"});
  std::filesystem::resize_file(train_images_, 0);
  expect({folder_.path()}, {"train-images-idx3-ubyte: truncated: 4 bytes expected, 0 found"});
}

TEST_F(BadInput, TruncatedAndDamagedGzip) {
  const Path images = folder_ / "t10k-images-idx3-ubyte.gz";
  Bytes noise(20000);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::uint8_t>(i * i * 2654435761U >> 13U);
  write_gzipped(images, idx_bytes({100, 10, 20}, noise));
  std::filesystem::resize_file(images, std::filesystem::file_size(images) / 2);
  expect({folder_.path()}, {"t10k-images-idx3-ubyte.gz: truncated: 20016 bytes expected"});
  write_gzipped(images, idx_bytes({2, 1, 2}, {1, 2, 3, 4}));
  std::fstream file(images, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-6, std::ios::end);  // in the checksum
  file.put('\x55');
  file.close();
  expect({folder_.path()}, {"t10k-images-idx3-ubyte.gz: damaged"});
}

TEST_F(BadInput, WrongMagic) {
  write_bytes(train_images_, {1, 2, 3, 4, 5});
  expect({folder_.path()}, {"train-images-idx3-ubyte: not an IDX file: starts with 01 02 03 04"});
  write_bytes(train_images_, {0, 0, 0x0D, 1, 0, 0, 0, 1, 0, 0, 0, 0});
  expect({folder_.path()}, {"IDX elements of type 0d", "bytes (08)"});
  write_bytes(train_images_, {0, 0, 8, 9});
  expect({folder_.path()}, {"IDX array of 9 axes"});
  write_bytes(train_images_, idx_bytes({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  expect({folder_.path()}, {"images must have 3 or 4 axes"});
  write_bytes(train_images_, idx_bytes({0, 1, 2}, {}));
  expect({folder_.path()}, {"axis 0 of the IDX file is empty"});
}

TEST_F(BadInput, HugeHeaderOfASmallFile) {
  write_bytes(train_images_, {0, 0, 8, 3, 0x7F, 255, 255, 255, 0, 0, 255, 255, 0, 0, 255, 255, 1, 2});
  expect({folder_.path()}, {"truncated", "18 found"});  // and not out of memory
  write_bytes(train_images_, {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2});
  expect({folder_.path()}, {"announces an impossible size"});
}

TEST_F(BadInput, TrailingBytes) {
  write_bytes(train_labels_, idx_bytes({4}, {0, 1, 1, 2, 0}));
  expect({folder_.path()}, {"train-labels-idx1-ubyte: more than the 12 bytes that its header announces"});
}

TEST_F(BadInput, Labels) {
  write_bytes(train_labels_, idx_bytes({3}, {0, 1, 1}));
  expect({folder_.path()}, {"4 images in", "train-images-idx3-ubyte but 3 labels in", "train-labels-idx1-ubyte"});
  write_small_idx(folder_.path());
  ConvertOptions options;
  options.classes = {"a", "b"};
  expect({folder_.path()}, {"train-labels-idx1-ubyte: label 2 of image 3 is outside 0 .. 1 (2 classes)"}, options);
  write_gzipped(folder_ / "t10k-labels-idx1-ubyte.gz", idx_bytes({2}, {2, 7}));
  expect({folder_.path()}, {"t10k-labels-idx1-ubyte.gz: label 7 of image 1 is outside 0 .. 2 (3 classes)"});
}

TEST_F(BadInput, SplitsThatDoNotFit) {
  write_gzipped(folder_ / "t10k-images-idx3-ubyte.gz", idx_bytes({2, 2, 1}, {1, 2, 3, 4}));
  expect({folder_.path()}, {"training images are 1 x 1 x 2, test images 1 x 2 x 1"});
  expect({train_images_, train_images_}, {"two files hold the training images"});
}

TEST_F(BadInput, Cifar10) {
  const Path train = folder_ / "data_batch_1.bin", test = folder_ / "test_batch.bin";
  write_bytes(test, cifar10_record(1));
  write_bytes(train, Bytes(5000, 1));
  expect({train, test}, {"data_batch_1.bin: truncated: 6146 bytes expected (2 records of 3073), 5000 found"});
  write_bytes(train, {});
  expect({train, test}, {"3073 bytes expected (1 records of 3073), 0 found"});
  write_bytes(train, cifar10_record(10));
  expect({train, test}, {"data_batch_1.bin: label 10 of image 0 is outside 0 .. 9"});
  expect({test}, {"no file holds the training images", "data_batch_1.bin"});
  expect({train}, {"no file holds the test images", "test_batch.bin"});
  expect({folder_.path()}, {"give files of one data set"});
}

TEST_F(BadInput, TextAndUnknownFormats) {
  std::ofstream(folder_ / "a.txt") << "too short";
  expect({folder_ / "a.txt"}, {"a.txt: 9 bytes of text; at least 20 are needed"});
  std::ofstream(folder_ / "a.csv") << "1,2,3";
  expect({folder_ / "a.csv"}, {"a.csv: of no format that is known", "idx, cifar10, text"});
  ConvertOptions options;
  options.train_limit = 5;
  expect({folder_ / "a.txt"}, {"a limit is for images"}, options);
}

}  // namespace
}  // namespace millrace::dataset
