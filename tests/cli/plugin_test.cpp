// An installed millrace, the example plug-in built against it, and what it brings used by name.
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using testing::HasSubstr;

class Plugin : public testing::Test {
 protected:
  // Installs this build and builds docs/example_plugin against what was installed, once for all tests.
  static void SetUpTestSuite() {
    built_ = std::make_unique<Workplace>();
    const std::string prefix = (*built_ / "installed").string(), build = (*built_ / "plugin").string();
    shell(fmt::format("cmake --install {} --prefix {}", MILLRACE_BINARY_DIR, prefix));
    shell(fmt::format("cmake -G Ninja -S {}/docs/example_plugin -B {} -DCMAKE_PREFIX_PATH={}", MILLRACE_SOURCE_DIR,
                      build, prefix));
    shell("cmake --build " + build);
    library_ = build + "/libexample.so";
    shell(prefix + "/bin/millrace partitioners --plugin " + library_);
  }

  static void TearDownTestSuite() { built_.reset(); }

  static void shell(const std::string& command) {
    const std::string log = (*built_ / "log").string();
    ASSERT_EQ(std::system((command + " >" + log + " 2>&1").c_str()), 0) << command << " (see " << log << ")";
  }

  Workplace place_;
  static inline std::unique_ptr<Workplace> built_;
  static inline std::string library_;
};

TEST_F(Plugin, BringsAPartitionerAndASchedule) {
  const std::string experiment = place_.write("e.yaml", R"(
name: e
model: {name: mlp, options: {inputs: 8, hidden: [16, 16], classes: 4}}
data: {batch: 8}
plan: {partitioner: halves, schedule: last_first, micro_batches: 4}
train: {iterations: 3}
)");
  const Outcome unknown = place_.run({"plan", experiment});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("unknown partitioner 'halves'"));

  const Outcome listed = place_.run({"schedules", "--plugin", library_});
  EXPECT_THAT(listed.out, HasSubstr("last_first"));

  const Outcome planned = place_.run({"plan", experiment, "--ranks", "3", "--plugin", library_});
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("halves"));

  // The runtime never knew the schedule; its gradients are those of one rank.
  const Outcome verified = place_.run({"verify", experiment, "--plugin", library_}, {.ranks = 3});
  EXPECT_EQ(verified.code, 0) << verified.err;
}

TEST_F(Plugin, IsRefusedWhereItDoesNotFit) {
  const Outcome missing = place_.run({"partitioners", "--plugin", "nowhere.so"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("--plugin nowhere.so"));
  const Outcome text = place_.run({"partitioners", "--plugin", place_.write("text.so", "not a library")});
  EXPECT_EQ(text.code, 2);
  const Outcome twice = place_.run({"partitioners", "--plugin", library_, "--plugin", library_});
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("'halves' is there already"));
}

}  // namespace
}  // namespace millrace::cli
