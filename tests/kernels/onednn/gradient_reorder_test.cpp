// Gradients of convolution weights come into rows with the bits that oneDNN's own reorder gives.
#include "kernels/onednn/gradient_reorder.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::kernels::onednn {
namespace {

using Tag = memory::format_tag;

struct ReorderCase {
  memory::dims dims;
  Tag tag;
  bool by_own_loops;
};

std::vector<float> numbers(std::size_t count, float first) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i % 1013) * 0.37F;
  return values;
}

TEST(GradientReorder, GivesTheBitsOfOneDnn) {
  const Engine engine;
  const ReorderCase cases[] = {
      {{32, 48, 1, 1}, Tag::OIhw16i16o, true},  {{48, 32, 3, 3}, Tag::OIhw16i16o, true},
      {{16, 16, 5, 2}, Tag::OIhw16i16o, true},  {{24, 8, 1, 1}, Tag::OIhw8i8o, true},
      {{8, 24, 3, 3}, Tag::OIhw8i8o, true},     {{40, 24, 3, 3}, Tag::OIhw16i16o, false},
      {{32, 16, 3, 3}, Tag::OIhw16o16i, false}, {{32, 3, 7, 7}, Tag::Ohwi16o, false},
  };
  for (const ReorderCase& one : cases) {
    const MemoryDesc from(one.dims, memory::data_type::f32, one.tag), rows = plain_desc(one.dims);
    EXPECT_EQ(blocked_weights(from).has_value(), one.by_own_loops);
    const std::vector<float> source = numbers(from.get_size() / sizeof(float), -100);
    for (const bool adds : {false, true}) {
      for (const int threads : {1, 3}) {
        std::vector<float> expected = numbers(rows.get_size() / sizeof(float), 5), got = expected;
        Reorder theirs = make_reorder(engine, from, rows, adds);
        GradientReorder ours(engine, threads, from);
        std::vector<std::byte> scratch(static_cast<std::size_t>(std::max(theirs.scratch, ours.scratch_bytes())));
        theirs.primitive.bind(0, source.data());
        theirs.primitive.bind(1, expected.data());
        theirs.primitive.bind(2, scratch.data());
        theirs.primitive.execute();
        if (adds) {
          ours.add(source.data(), got.data(), scratch.data());
        } else {
          ours.write(source.data(), got.data(), scratch.data());
        }
        EXPECT_EQ(expected, got) << one.dims[0] << " x " << one.dims[1] << " adds " << adds;
      }
    }
  }
}

}  // namespace
}  // namespace millrace::kernels::onednn
