// Files cut and damaged at every position: each is refused as invalid input, or is a sound graph.
#include <gtest/gtest.h>

#include "base/errors.h"
#include "base/log.h"
#include "import/graph_file.h"
#include "import/import.h"
#include "tests/import/samples.h"

namespace millrace::import {
namespace {

class Fuzz : public testing::TestWithParam<samples::Sample> {
 protected:
  Fuzz() { log::configure(log::Level::quiet); }
  ~Fuzz() override { log::configure(log::Level::normal); }
};

// Anything but InvalidInput leaves the test.
void expect_refused_or_sound(const std::string& text, const std::string& file) {
  try {
    const Imported imported = load_text(text, file);
    ASSERT_GT(imported.graph.size(), 0);
    ASSERT_GE(imported.batch, 1);
    for (OpId id = 0; id < imported.graph.size(); ++id) {
      for (const TensorId input : imported.graph.op(id).inputs) ASSERT_LT(imported.graph.tensor(input).producer, id);
    }
  } catch (const InvalidInput& error) {
    ASSERT_NE(std::string(error.what()).find(file), std::string::npos) << error.what();
  }
}

TEST_P(Fuzz, CutAtEveryPosition) {
  const auto& [file, text] = GetParam();
  for (std::size_t length = 0; length <= text.size(); ++length) {
    SCOPED_TRACE(length);
    expect_refused_or_sound(text.substr(0, length), file);
  }
}

TEST_P(Fuzz, DamagedAtEveryPosition) {
  const auto& [file, text] = GetParam();
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'\0', '"', '{', ']', '9', '-', '.', 'e', ' ', '\n', '\xff'}) {
      std::string damaged = text;
      damaged[at] = c;
      SCOPED_TRACE(damaged);
      expect_refused_or_sound(damaged, file);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Fuzz, WithoutAnyPart) {
  const auto& [file, text] = GetParam();
  for (const std::size_t length : {1, 5, 40}) {
    for (std::size_t at = 0; at + length <= text.size(); ++at) {
      SCOPED_TRACE(at);
      expect_refused_or_sound(text.substr(0, at) + text.substr(at + length), file);
    }
  }
}

TEST_P(Fuzz, WithAnyPartTwice) {
  const auto& [file, text] = GetParam();
  for (std::size_t at = 0; at + 30 <= text.size(); ++at) {
    SCOPED_TRACE(at);
    expect_refused_or_sound(text.substr(0, at + 30) + text.substr(at), file);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Fuzz, testing::ValuesIn(samples::all()), [](const auto& row) {
  std::string name = row.param.file;
  for (char& c : name) c = c == '.' || c == '-' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace millrace::import
