// Text as tokens: one token a distinct byte, in the order of their values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace millrace::dataset {

struct TextCorpus {
  std::vector<std::string> vocabulary;  ///< printable ASCII as itself, other bytes as \xNN
  std::vector<std::int32_t> train;      ///< the first nine tenths
  std::vector<std::int32_t> test;       ///< the last tenth, at least one token
};

/// All `files` one after the other. \throws InvalidInput for a missing file or less than 20 bytes.
TextCorpus read_text(std::span<const std::filesystem::path> files);

}  // namespace millrace::dataset
