// Reads the files that converters take, plain or gzipped, up to the size that their format says.
#include "dataset/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <zlib.h>

#include "base/errors.h"

namespace millrace::dataset {
namespace {

gzFile zlib(void* stream) { return static_cast<gzFile>(stream); }

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  if (!std::filesystem::exists(path)) throw InvalidInput(path.string() + ": no such file");
  if (std::filesystem::is_directory(path)) throw InvalidInput(path.string() + ": is a folder, not a file");
  stream_ = ::gzopen(path.c_str(), "rb");
  if (stream_ == nullptr) {
    throw InvalidInput(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
  }
  ::gzbuffer(zlib(stream_), 1U << 17U);
}

InputFile::~InputFile() { ::gzclose(zlib(stream_)); }

std::vector<std::uint8_t> InputFile::read(std::int64_t limit) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  std::vector<std::uint8_t> bytes;
  while (static_cast<std::int64_t>(bytes.size()) < limit) {
    const std::size_t old = bytes.size();
    const auto want = std::min(kPiece, limit - static_cast<std::int64_t>(old));
    bytes.resize(old + static_cast<std::size_t>(want));
    const int got = ::gzread(zlib(stream_), bytes.data() + old, static_cast<unsigned>(want));
    bytes.resize(old + static_cast<std::size_t>(std::max(got, 0)));
    int code = Z_OK;
    const char* cause = ::gzerror(zlib(stream_), &code);
    const bool cut_off = code == Z_BUF_ERROR;  // then the caller knows better how much is missing
    if (code != Z_OK && !cut_off) throw InvalidInput(fmt::format("{}: damaged: {}", path_.string(), cause));
    if (got <= 0) break;
  }
  done_ += static_cast<std::int64_t>(bytes.size());
  return bytes;
}

std::vector<std::uint8_t> InputFile::read_exactly(std::int64_t size) {
  const std::int64_t before = done_;
  std::vector<std::uint8_t> bytes = read(size);
  if (static_cast<std::int64_t>(bytes.size()) != size) {
    throw InvalidInput(
        fmt::format("{}: truncated: {} bytes expected, {} found", path_.string(), before + size, done_));
  }
  return bytes;
}

void InputFile::require_end() {
  const std::int64_t expected = done_;
  if (!read(1).empty()) {
    throw InvalidInput(fmt::format("{}: more than the {} bytes that its header announces", path_.string(), expected));
  }
}

}  // namespace millrace::dataset
