// Text as tokens: one token a distinct byte, in the order of their values.
#include "dataset/text_corpus.h"

#include <array>

#include <fmt/format.h>

#include "base/errors.h"
#include "dataset/input_file.h"

namespace millrace::dataset {
namespace {

std::string written(std::size_t byte) {
  const bool printable = byte >= 0x20 && byte <= 0x7E;
  return printable ? std::string(1, static_cast<char>(byte)) : fmt::format("\\x{:02x}", byte);
}

}  // namespace

TextCorpus read_text(std::span<const std::filesystem::path> files) {
  constexpr std::size_t kLeast = 20;  // two bytes of test: a token and its label
  std::vector<std::uint8_t> bytes;
  for (const std::filesystem::path& path : files) {
    const std::vector<std::uint8_t> more = InputFile(path).read(INT64_MAX);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  if (bytes.size() < kLeast) {
    throw InvalidInput(fmt::format("{}: {} bytes of text; at least {} are needed", files.front().string(),
                                   bytes.size(), kLeast));
  }
  std::array<bool, 256> used{};
  for (const std::uint8_t byte : bytes) used[byte] = true;
  TextCorpus corpus;
  std::array<std::int32_t, 256> token{};
  for (std::size_t byte = 0; byte < used.size(); ++byte) {
    if (!used[byte]) continue;
    token[byte] = static_cast<std::int32_t>(corpus.vocabulary.size());
    corpus.vocabulary.push_back(written(byte));
  }
  const std::size_t test = bytes.size() / 10;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    (i < bytes.size() - test ? corpus.train : corpus.test).push_back(token[bytes[i]]);
  }
  return corpus;
}

}  // namespace millrace::dataset
