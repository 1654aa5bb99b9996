// The command line as typed: values, and refusals that name the nearest command, option or word.
#include "app/arguments.h"

#include <gmock/gmock.h>

#include "base/errors.h"

namespace millrace::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Arguments parse(std::vector<std::string> words) {
  words.insert(words.begin(), "millrace");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_command_line(static_cast<int>(words.size()), argv.data(), false);
}

std::string command_refusal(const std::vector<std::string>& words) {
  try {
    parse(words);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(CommandLine, OptionsBecomeValues) {
  const Arguments a =
      parse({"plan", "e.yaml", "--ranks", "8", "--set", "a.b=1", "--set", "c=[1, 2]", "--format", "json", "--explain",
             "--time-limit", "2.5 s", "--top", "3", "-o", "p.yaml", "--overwrite"});
  EXPECT_EQ(a.command, "plan");
  EXPECT_THAT(a.files, ElementsAre("e.yaml"));
  EXPECT_EQ(a.ranks, 8);
  EXPECT_THAT(a.sets, ElementsAre("a.b=1", "c=[1, 2]"));
  EXPECT_EQ(a.format, Format::json);
  EXPECT_TRUE(a.explain);
  EXPECT_EQ(a.time_limit_s, 2.5);
  EXPECT_EQ(a.top, 3);
  EXPECT_EQ(a.output, "p.yaml");
  EXPECT_TRUE(a.overwrite);
  EXPECT_FALSE(a.quiet || a.verbose);
}

TEST(CommandLine, TwoOutputsNeedTwoFiles) {
  EXPECT_EQ(command_refusal({"simulate", "e.yaml", "--svg", "a/../t", "--trace", "./t"}),
            "--svg and --trace both name a/../t; each needs a file of its own");
  EXPECT_EQ(command_refusal({"simulate", "e.yaml", "--svg", "t.svg", "--trace", "t.json"}), "");
}

TEST(CommandLine, DefaultsAreThoseOfTheDocument) {
  const Arguments a = parse({"simulate", "e.yaml"});
  EXPECT_FALSE(a.ranks);
  EXPECT_EQ(a.format, Format::table);
  EXPECT_FALSE(a.time_limit_s || a.output || a.overwrite);
}

TEST(CommandLine, HelpAndVersionAskForNothingMore) {
  EXPECT_EQ(parse({"--help"}).command, "");
  EXPECT_EQ(parse({"--version"}).command, "");
  for (const char* command :
       {"run", "plan", "check", "verify", "simulate", "data", "models", "partitioners", "schedules", "doctor"}) {
    EXPECT_EQ(parse({command, "--help"}).command, "") << command;
  }
}

TEST(CommandLine, TheNearestCommandIsNamed) {
  EXPECT_THAT(command_refusal({"simulat", "e.yaml"}),
              AllOf(HasSubstr("'simulat' (did you mean 'simulate'?)"), HasSubstr("doctor")));
  EXPECT_THAT(command_refusal({}), HasSubstr("no command given; one of: run, plan"));
}

TEST(CommandLine, TheNearestOptionIsNamed) {
  EXPECT_THAT(command_refusal({"plan", "e.yaml", "--explian"}),
              HasSubstr("unknown option of plan '--explian' (did you mean '--explain'?)"));
  EXPECT_THAT(command_refusal({"run", "e.yaml", "--ranks", "4"}), HasSubstr("unknown option of run '--ranks'"));
  EXPECT_THAT(command_refusal({"run", "e.yaml", "--resume=3"}),
              HasSubstr("option '--resume' of run takes no value, found '--resume=3'"));
  EXPECT_THAT(command_refusal({"plan", "e.yaml", "--format", "jason"}),
              HasSubstr("unknown --format 'jason' (did you mean 'json'?); valid: table, json"));
}

TEST(CommandLine, CountsAndFilesAreChecked) {
  EXPECT_THAT(command_refusal({"run"}), HasSubstr("experiment is required"));
  EXPECT_THAT(command_refusal({"run", "a.yaml", "b.yaml"}), HasSubstr("experiment"));
  EXPECT_THAT(command_refusal({"plan", "e.yaml", "--ranks", "0"}), HasSubstr("--ranks"));
  EXPECT_THAT(command_refusal({"plan", "e.yaml", "--ranks", "two"}), HasSubstr("--ranks"));
  EXPECT_THAT(command_refusal({"plan", "e.yaml", "--time-limit", "-1"}), HasSubstr("--time-limit"));
  EXPECT_THAT(command_refusal({"plan", "e.yaml", "--set"}), HasSubstr("--set"));
  EXPECT_THAT(command_refusal({"data", "in"}), HasSubstr("--output"));
  EXPECT_THAT(command_refusal({"plan", "e.yaml", "--top", "0"}), HasSubstr("not in range 1 to 1048576"));
  EXPECT_THAT(command_refusal({"import", "g.txt", "--profile-batch", "0"}),
              HasSubstr("found 0, allowed: number, at least 1"));
  EXPECT_THAT(command_refusal({"doctor", "--timeout", "0"}), HasSubstr("found 0, allowed: number, above 0"));
}

TEST(CommandLine, ListsTakeNoOptionsWithoutEffect) {
  for (const char* command : {"models", "partitioners", "schedules", "clusters", "doctor"}) {
    EXPECT_THAT(command_refusal({command, "--set", "a=1"}), HasSubstr("'--set'")) << command;
    EXPECT_EQ(command_refusal({command, "--quiet", "--format", "json"}), "") << command;
  }
  EXPECT_THAT(command_refusal({"clusters", "--plugin", "x.so"}), HasSubstr("'--plugin'"));
  EXPECT_EQ(command_refusal({"partitioners", "--plugin", "x.so"}), "");
}

}  // namespace
}  // namespace millrace::app
