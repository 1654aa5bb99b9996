// Digests of whole texts and of their pieces.
#include "base/hash.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(DigestStream, IsTheDigestOfAllPieces) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(i * i) + '\t';
  for (const std::size_t piece : {1U, 7U, 256U, 100'000U}) {
    DigestStream stream;
    for (std::size_t at = 0; at < text.size(); at += piece) stream.add(std::string_view(text).substr(at, piece));
    EXPECT_EQ(stream.digest(), digest(text)) << piece;
    EXPECT_EQ(stream.digest().size(), 32U);
  }
  EXPECT_EQ(DigestStream().digest(), digest(""));
  EXPECT_NE(digest("a"), digest("b"));
}

}  // namespace
}  // namespace millrace
