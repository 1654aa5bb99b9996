// Reads the files that converters take, plain or gzipped, up to the size that their format says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace millrace::dataset {

/// A file read from its start to its end; `.gz` content is unpacked whatever the name.
/// \throws InvalidInput naming the file when it is missing or its gzip data is damaged.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  /// Up to `limit` further bytes; fewer at the end, or where a gzip file was cut off. Memory grows with what is found,
  /// not with what is asked.
  std::vector<std::uint8_t> read(std::int64_t limit);
  /// All `size` further bytes. \throws InvalidInput with the expected and found sizes of the file if it is shorter.
  std::vector<std::uint8_t> read_exactly(std::int64_t size);
  /// \throws InvalidInput if anything follows.
  void require_end();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  void* stream_;  ///< zlib's gzFile
  std::int64_t done_ = 0;
};

}  // namespace millrace::dataset
