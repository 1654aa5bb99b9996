// Foreign data files in, one HDF5 data file out: `millrace data IN... -o D.h5` (INTERFACES 1, 9).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataset/data_file.h"

namespace millrace::dataset {

enum class ForeignFormat { idx, cifar10, text };
const std::vector<std::string>& foreign_format_names();  ///< in the order of ForeignFormat

/// What the user may say; what is left out is taken from the input, or from what is known of a published set.
struct ConvertOptions {
  std::optional<ForeignFormat> format;       ///< else told by names and content
  std::string name;                          ///< else the published set's, else the output file's
  std::vector<std::string> classes;          ///< else the published set's, else "0", "1", ... to the highest label
  std::string licence;                       ///< else the published set's, else "unknown"
  std::string source;                        ///< else the published set's, else the first input
  std::optional<std::int64_t> train_limit;   ///< images only: that many, balanced over the classes
  std::optional<std::int64_t> test_limit;
  bool overwrite = false;
};

/// What came of it.
struct Converted {
  DataDescription description;
  std::int64_t train = 0;  ///< images or tokens
  std::int64_t test = 0;
};

/// `inputs` is one folder or files. IDX: images and labels of both splits (file names with t10k or test are the test
/// split). CIFAR-10: data_batch_N.bin and test_batch.bin. Text: any files, one after the other; the test split is the
/// last tenth. Every IDX and CIFAR-10 file may be gzipped.
/// \throws InvalidInput naming the file that is missing, truncated, foreign or inconsistent, and when `output` exists.
Converted convert(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
                  const ConvertOptions& options);

}  // namespace millrace::dataset
