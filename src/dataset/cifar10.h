// The binary format of CIFAR-10: records of one label byte and 3 x 32 x 32 pixels.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "dataset/images.h"

namespace millrace::dataset {

const std::vector<std::string>& cifar10_classes();

/// True for the names data_batch_N.bin and test_batch.bin, gzipped or not.
bool is_cifar10_name(const std::filesystem::path& path);

/// All records of `files`, one file after the other. \throws InvalidInput naming the file: missing, no whole number of
/// records (bytes expected and found), labels above 9.
Images read_cifar10(std::span<const std::filesystem::path> files);

}  // namespace millrace::dataset
