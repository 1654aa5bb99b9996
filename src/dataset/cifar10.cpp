// The binary format of CIFAR-10: records of one label byte and 3 x 32 x 32 pixels.
#include "dataset/cifar10.h"

#include <cstdint>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "dataset/input_file.h"

namespace millrace::dataset {
namespace {

constexpr std::int64_t kPixels = 3 * 32 * 32;
constexpr std::int64_t kRecord = 1 + kPixels;

void append_file(const std::filesystem::path& path, Images& images) {
  InputFile file(path);
  const std::vector<std::uint8_t> bytes = file.read(INT64_MAX);
  const auto found = static_cast<std::int64_t>(bytes.size());
  if (found == 0 || found % kRecord != 0) {
    throw InvalidInput(fmt::format("{}: truncated: {} bytes expected ({} records of {}), {} found", path.string(),
                                   (found / kRecord + 1) * kRecord, found / kRecord + 1, kRecord, found));
  }
  Images read{3, 32, 32, {}, {}, path.string()};
  for (auto record = bytes.begin(); record != bytes.end(); record += kRecord) {
    read.labels.push_back(*record);
    read.pixels.insert(read.pixels.end(), record + 1, record + kRecord);
  }
  require_labels(read, static_cast<std::int64_t>(cifar10_classes().size()));
  images.labels.insert(images.labels.end(), read.labels.begin(), read.labels.end());
  images.pixels.insert(images.pixels.end(), read.pixels.begin(), read.pixels.end());
}

}  // namespace

const std::vector<std::string>& cifar10_classes() {
  static const std::vector<std::string> names{"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"};
  return names;
}

bool is_cifar10_name(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return matches_glob("data_batch_*.bin*", name) || matches_glob("test_batch.bin*", name);
}

Images read_cifar10(std::span<const std::filesystem::path> files) {
  Images images{3, 32, 32, {}, {}, files.front().string()};
  for (const std::filesystem::path& file : files) append_file(file, images);
  return images;
}

}  // namespace millrace::dataset
