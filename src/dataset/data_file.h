// The data file's names and kinds (INTERFACES 9, Data files), as writer and reader share them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/source.h"

namespace millrace::dataset {

inline constexpr std::int64_t kDataFormat = 1;  ///< root attribute `millrace_data`

enum class DataKind { images, features, text };

std::string_view name_of(DataKind kind);       ///< "images"
inline const char* name_of(Split split) { return split == Split::train ? "train" : "test"; }

/// The root attributes of a data file.
struct DataDescription {
  std::string name;
  DataKind kind = DataKind::images;
  std::vector<std::string> classes;  ///< names of the classes; of text the distinct bytes, token t is classes[t]
  std::vector<double> mean;          ///< per channel of the training split, in 0..1; none for text
  std::vector<double> deviation;     ///< attribute `std`, likewise
  std::string licence;
  std::string source;
};

}  // namespace millrace::dataset
