// The matrix of a sweep: its order, what it leaves out and adds, held against a slow expansion; and what it refuses.
#include "config/matrix.h"

#include <gmock/gmock.h>

#include "base/random.h"
#include "tests/config/support.h"

namespace millrace::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Matrix matrix_of(std::string_view text) {
  Problems problems;
  const Node root = load_text(text, exp_yaml(), problems);
  Matrix matrix;
  {
    Reader reader(root, problems);
    matrix = read_matrix(reader);
  }
  problems.throw_if_any();
  return matrix;
}

std::string refused(std::string_view text) {
  return refusal([&] { matrix_of(text); });
}

std::string text_of(const Settings& settings) {
  std::string text;
  for (const Setting& setting : settings)
    text += (text.empty() ? "" : " ") + setting.path + "=" + one_line(setting.value);
  return text;
}

std::vector<std::string> cells_of(std::string_view text) {
  std::vector<std::string> cells;
  for (const Settings& settings : expand(matrix_of(text)).cells) cells.push_back(text_of(settings));
  return cells;
}

TEST(Matrix, FirstAxisVariesSlowestAndInclusionsComeLast) {
  EXPECT_THAT(cells_of("matrix: {a: [1, 2], b.c: [x, y]}\ninclude: [{a: 3, d: [1, 2]}]"),
              ElementsAre("a=1 b.c=x", "a=1 b.c=y", "a=2 b.c=x", "a=2 b.c=y", "a=3 d=[1, 2]"));
  EXPECT_THAT(setting_paths(matrix_of("matrix: {a: [1], b.c: [2]}\ninclude: [{a: 3, d: 4}]")),
              ElementsAre("a", "b.c", "d"));
}

TEST(Matrix, LinkedKeysMoveTogether) {
  EXPECT_THAT(cells_of("matrix: {a: [1, 2]}\nlinked: [{n: [4, 8], batch: [32, 64]}]"),
              ElementsAre("a=1 n=4 batch=32", "a=1 n=8 batch=64", "a=2 n=4 batch=32", "a=2 n=8 batch=64"));
}

TEST(Matrix, TheSmallSizeKeepsCellsThatHaveAllOfItsSettings) {
  const Matrix matrix = matrix_of("matrix: {a: [1, 2, 3], b: [{name: x, c: 1}, y]}\nsmall: {a: [1, 3], b: x}");
  std::vector<std::string> kept;
  for (const Settings& cell : expand(matrix).cells) {
    if (has_settings(cell, matrix.small)) kept.push_back(text_of(cell));
  }
  EXPECT_THAT(kept, ElementsAre("a=1 b={name: x, c: 1}", "a=3 b={name: x, c: 1}"));
  EXPECT_THAT(refused("small: {}"), HasSubstr("small: found no key"));
}

TEST(Matrix, WithoutAxesThereIsTheBaseOrWhatIsIncluded) {
  EXPECT_THAT(cells_of("x-note: 1\n"), ElementsAre(""));
  EXPECT_THAT(cells_of("include: [{a: 1}]"), ElementsAre("a=1"));
}

TEST(Matrix, ExclusionsNameValuesByWordListOrWhole) {
  const std::string axes = "matrix:\n  p: [dp, {name: exact, time_limit: 1 s}]\n  m: [1, [1, 2], 4]\n";
  EXPECT_THAT(cells_of(axes + "exclude: [{p: exact}]"), ElementsAre("p=dp m=1", "p=dp m=[1, 2]", "p=dp m=4"));
  EXPECT_THAT(cells_of(axes + "exclude: [{p: [dp, exact], m: [1, 4]}]"),
              ElementsAre("p=dp m=[1, 2]", "p={name: exact, time_limit: 1 s} m=[1, 2]"));
  EXPECT_THAT(cells_of(axes + "exclude: [{p: dp}, {p: {time_limit: 1 s, name: exact}}]"), ElementsAre());
}

TEST(Matrix, ExclusionsCountWhatTheyLeaveOut) {
  const Matrix matrix =
      matrix_of("matrix: {a: [1, 2, 3], b: [1, 2]}\nexclude: [{a: 1, reason: too small}, {b: 1}, {a: 1, b: 2}]");
  EXPECT_EQ(matrix.exclude[0].reason, "too small");
  EXPECT_THAT(expand(matrix).excluded, ElementsAre(2, 2, 0));
}

// A product by recursion over texts, with the exclusions applied to the whole afterwards.
void slow(const std::vector<std::vector<std::string>>& axes, std::size_t axis, const std::string& so_far,
          const std::vector<std::pair<std::string, std::string>>& excluded, std::vector<std::string>& cells) {
  if (axis == axes.size()) {
    for (const auto& [one, other] : excluded) {
      if ((so_far + " ").find(one + " ") != std::string::npos && (so_far + " ").find(other + " ") != std::string::npos)
        return;
    }
    cells.push_back(so_far);
    return;
  }
  for (const std::string& point : axes[axis]) {
    slow(axes, axis + 1, so_far.empty() ? point : so_far + " " + point, excluded, cells);
  }
}

TEST(Matrix, EqualsASlowExpansion) {
  const Random random(1, "matrix");
  std::uint64_t draw = 0;
  const auto below = [&](std::uint64_t limit) { return random.below(limit, ++draw); };
  for (int round = 0; round < 200; ++round) {
    std::string text = "matrix:\n";
    std::vector<std::vector<std::string>> axes(1 + below(4));
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const std::string key(1, static_cast<char>('a' + a));
      text += "  " + key + ": [";
      const std::size_t count = 1 + below(4);
      for (std::size_t v = 0; v < count; ++v) {
        text += (v > 0 ? ", v" : "v") + std::to_string(v);
        axes[a].push_back(key + "=v" + std::to_string(v));
      }
      text += "]\n";
    }
    std::vector<std::pair<std::string, std::string>> excluded;
    if (axes.size() > 1) {
      text += "exclude:\n";
      for (std::uint64_t e = 0; e < 1 + below(3); ++e) {
        const std::string one = axes[0][below(axes[0].size())], other = axes[1][below(axes[1].size())];
        text += "  - {a: " + one.substr(2) + ", b: " + other.substr(2) + "}\n";
        excluded.emplace_back(one, other);
      }
    }
    std::vector<std::string> expected;
    slow(axes, 0, "", excluded, expected);
    EXPECT_EQ(cells_of(text), expected) << text;
  }
}

TEST(Matrix, Refusals) {
  EXPECT_THAT(refused("matrix: {a: []}"), HasSubstr("exp.yaml:1:13: matrix.a: found an empty list"));
  EXPECT_THAT(refused("matrix: {a: 1}"), AllOf(HasSubstr("matrix.a: found '1'"), HasSubstr("a list")));
  EXPECT_THAT(refused("matrix: {a: [1]}\nlinked: [{b: [1, 2], a: [1, 2]}]"), HasSubstr("on another axis already"));
  EXPECT_THAT(refused("matrix: {plan: [1], plan.stages: [2]}"), HasSubstr("one of the two is within the other"));
  EXPECT_THAT(refused("linked: [{a: [1, 2], b: [1]}]"),
              HasSubstr("found 1 values, allowed: 2, as many as 'a' that it is linked with"));
  EXPECT_THAT(refused("matrix: {alpha: [1]}\nexclude: [{alpa: 1}]"), HasSubstr("did you mean 'alpha'?"));
  EXPECT_THAT(refused("matrix: {a: [1]}\nexclude: [{reason: none}]"), HasSubstr("would exclude every cell"));
  EXPECT_THAT(refused("include: [{}]"), HasSubstr("the settings of a further cell"));
  std::string huge = "matrix:\n";
  for (char key = 'a'; key < 'h'; ++key) huge += std::string("  ") + key + ": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n";
  EXPECT_THAT(refused(huge), HasSubstr("more than 1000000 combinations"));
}

}  // namespace
}  // namespace millrace::config
