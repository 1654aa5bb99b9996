// Which of the given files is what: the format of a set, and the parts of its splits.
#include "dataset/foreign_files.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "dataset/cifar10.h"
#include "dataset/idx.h"

namespace millrace::dataset {
namespace {

using Path = std::filesystem::path;

constexpr const char* kTrainImages = "the training images";
constexpr const char* kTrainLabels = "the training labels";
constexpr const char* kTestImages = "the test images";
constexpr const char* kTestLabels = "the test labels";

bool is_text_name(const Path& path) { return path.extension() == ".txt"; }
bool is_idx_name(const Path& path) { return matches_glob("*idx?-ubyte*", path.filename().string()); }

bool is_test_name(const Path& path) {
  const std::string name = path.filename().string();
  return name.find("t10k") != std::string::npos || name.find("test") != std::string::npos;
}

std::vector<Path> files_of_folder(const Path& folder) {
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Path& path = entry.path();
    if (entry.is_regular_file() && (is_idx_name(path) || is_cifar10_name(path))) files.push_back(path);
  }
  if (files.empty()) {
    throw InvalidInput(fmt::format("{}: holds no data set that is known: neither IDX files (train-images-idx3-ubyte, "
                                   "train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, each with "
                                   "or without .gz) nor CIFAR-10 files (data_batch_N.bin, test_batch.bin)",
                                   folder.string()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<ForeignFormat> format_of(const Path& path) {
  if (is_cifar10_name(path)) return ForeignFormat::cifar10;
  if (is_text_name(path)) return ForeignFormat::text;
  if (is_idx_name(path) || is_idx(path)) return ForeignFormat::idx;
  return std::nullopt;
}

void put(Path& place, const Path& file, const char* part) {
  if (!place.empty()) {
    throw InvalidInput(fmt::format("two files hold {}: {} and {}", part, place.string(), file.string()));
  }
  place = file;
}

void require(const Path& place, const char* part, const char* usual_name) {
  if (place.empty()) throw InvalidInput(fmt::format("no file holds {} (usually named {})", part, usual_name));
}

}  // namespace

std::vector<Path> files_of(std::span<const Path> inputs) {
  if (inputs.empty()) throw InvalidInput("no input is given");
  for (const Path& input : inputs) {
    if (!std::filesystem::exists(input)) throw InvalidInput(input.string() + ": no such file or folder");
    if (!std::filesystem::is_directory(input)) continue;
    if (inputs.size() > 1) throw InvalidInput(input.string() + ": give one folder, or files");
    return files_of_folder(input);
  }
  return {inputs.begin(), inputs.end()};
}

ForeignFormat format_of(std::span<const Path> files) {
  std::optional<ForeignFormat> common;
  for (const Path& file : files) {
    const std::optional<ForeignFormat> found = format_of(file);
    if (!found) {
      throw InvalidInput(fmt::format("{}: of no format that is known; say which with --format: {}", file.string(),
                                     join(foreign_format_names())));
    }
    if (common && *common != *found) {
      const auto& names = foreign_format_names();
      throw InvalidInput(fmt::format("{} is {}, but {} is {}: give files of one data set", files.front().string(),
                                     names[static_cast<std::size_t>(*common)], file.string(),
                                     names[static_cast<std::size_t>(*found)]));
    }
    common = found;
  }
  return *common;
}

IdxFiles idx_files(std::span<const Path> files) {
  IdxFiles parts;
  for (const Path& file : files) {
    // The name may say nothing, the number of axes does.
    const bool labels = idx_axes(file) == 1;
    if (is_test_name(file)) {
      labels ? put(parts.test_labels, file, kTestLabels) : put(parts.test_images, file, kTestImages);
    } else {
      labels ? put(parts.train_labels, file, kTrainLabels) : put(parts.train_images, file, kTrainImages);
    }
  }
  require(parts.train_images, kTrainImages, "train-images-idx3-ubyte");
  require(parts.train_labels, kTrainLabels, "train-labels-idx1-ubyte");
  require(parts.test_images, kTestImages, "t10k-images-idx3-ubyte");
  require(parts.test_labels, kTestLabels, "t10k-labels-idx1-ubyte");
  return parts;
}

Cifar10Files cifar10_files(std::span<const Path> files) {
  Cifar10Files parts;
  for (const Path& file : files) (is_test_name(file) ? parts.test : parts.train).push_back(file);
  if (parts.train.empty()) throw InvalidInput("no file holds the training images (usually named data_batch_1.bin)");
  if (parts.test.empty()) throw InvalidInput("no file holds the test images (usually named test_batch.bin)");
  return parts;
}

}  // namespace millrace::dataset
