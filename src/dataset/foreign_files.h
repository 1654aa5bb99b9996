// Which of the given files is what: the format of a set, and the parts of its splits.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "dataset/convert.h"

namespace millrace::dataset {

/// The files themselves, or those of the one folder given that a converter reads, sorted by name.
/// \throws InvalidInput for nothing given, a missing path, a folder without such files or beside other inputs.
std::vector<std::filesystem::path> files_of(std::span<const std::filesystem::path> inputs);

/// By name and content. \throws InvalidInput when the files are of several formats or of none that is known.
ForeignFormat format_of(std::span<const std::filesystem::path> files);

struct IdxFiles {
  std::filesystem::path train_images, train_labels, test_images, test_labels;
};
/// One file for each part. \throws InvalidInput naming the part that is missing or there twice.
IdxFiles idx_files(std::span<const std::filesystem::path> files);

struct Cifar10Files {
  std::vector<std::filesystem::path> train, test;
};
/// \throws InvalidInput when one of the splits is missing.
Cifar10Files cifar10_files(std::span<const std::filesystem::path> files);

}  // namespace millrace::dataset
