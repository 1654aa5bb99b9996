// Where output goes: never over a device or an input, and never lost in silence (INTERFACES 1).
#include <fstream>

#include <sys/stat.h>

#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kGraph =
    "millrace_graph: 1\nname: two\noperators:\n"
    "  - {name: a, kind: cost, forward: 2 ms, output: 1 MiB}\n"
    "  - {name: b, kind: cost, inputs: [a], forward: 3 ms}\n";

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Output, DevicesAndPipesAreNotReplaced) {
  const Workplace place;
  place.write("e.yaml", tiny());
  place.write("g.yaml", kGraph);
  ASSERT_EQ(::mkfifo((place / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/full", place / "full");
  for (const std::string target : {"pipe", "full"}) {
    expect_one_error(place, place.run({"plan", "e.yaml", "-o", target, "--overwrite"}), 2, {"is not a regular file"});
    expect_one_error(place, place.run({"import", "g.yaml", "-o", target, "--overwrite"}), 2, {"is not a regular file"});
    expect_one_error(place, place.run({"data", MILLRACE_SOURCE_DIR "/data/sample.txt", "-o", target, "--overwrite"}), 2,
                     {"is not a regular file"});
  }
  EXPECT_TRUE(std::filesystem::is_fifo(place / "pipe"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(Output, InputsAreNotReplaced) {
  const Workplace place;
  place.write("g.yaml", kGraph);
  place.write("c.yaml", "flat: {devices: 2, bandwidth: 1 GB/s}\n");
  const std::string experiment = "name: t\nmodel: {file: g.yaml}\ncluster: c.yaml\n";
  place.write("e.yaml", experiment);
  std::filesystem::create_symlink("e.yaml", place / "link.yaml");
  for (const char* target : {"e.yaml", "link.yaml", "g.yaml", "c.yaml"}) {
    expect_one_error(place, place.run({"plan", "e.yaml", "-o", target, "--overwrite"}), 2, {target, "is an input"});
    expect_one_error(place, place.run({"simulate", "e.yaml", "--trace", target}), 2, {target, "is an input"});
  }
  expect_one_error(place, place.run({"import", "g.yaml", "-o", "g.yaml", "--overwrite"}), 2, {"is an input"});
  EXPECT_EQ(content(place / "e.yaml"), experiment);
  EXPECT_EQ(content(place / "g.yaml"), kGraph);
  expect_done(place, place.run({"plan", "e.yaml", "-o", "p.yaml"}));
}

TEST(Output, AFullDeviceIsAnError) {
  const Workplace place;
  place.write("e.yaml", tiny());
  place.write("g.yaml", kGraph);
  JobOptions options;
  options.before = {"sh", "-c", "\"$0\" \"$@\" > /dev/full"};
  for (const std::vector<std::string>& words : {std::vector<std::string>{"plan", "e.yaml"},
                                                {"plan", "e.yaml", "--format", "json"},
                                                {"check", "e.yaml"},
                                                {"import", "g.yaml"},
                                                {"models"},
                                                {"clusters", "--format", "json"},
                                                {"--help"}}) {
    expect_one_error(place, place.run(words, options), 4, {"standard output: write failed"});
  }
}

TEST(Output, CheckAndImportCallAModelTheSame) {
  const Workplace place;
  place.write("g.yaml", kGraph);
  place.write("e.yaml", "name: t\nmodel: {file: g.yaml}\n");
  EXPECT_THAT(place.run({"import", "g.yaml"}).out, HasSubstr("two"));
  EXPECT_THAT(place.run({"check", "e.yaml"}).out, AllOf(HasSubstr("two: 2 operators"), HasSubstr("1 pipeline,")));
}

}  // namespace
}  // namespace millrace::cli
