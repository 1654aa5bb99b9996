// Checks that name what a job said when they fail.
#include "tests/cli/expect.h"

#include <fstream>
#include <iterator>

namespace millrace::cli {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

using nlohmann::json;

void expect_one_error(const Workplace& place, const Outcome& outcome, int code, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.errors().size(), 1U) << outcome.err;
  for (const std::string& part : parts) EXPECT_THAT(outcome.err, testing::HasSubstr(part));
  EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("internal error")));
  EXPECT_THAT(place.left_over(), testing::IsEmpty());
}

void expect_done(const Workplace& place, const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.errors(), testing::IsEmpty());
  EXPECT_THAT(place.left_over(), testing::IsEmpty());
}

json document(const Outcome& outcome) {
  json parsed = json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << "not one JSON document: " << outcome.out;
  return parsed.is_discarded() ? json() : parsed;
}

std::string tiny(const std::string& more) {
  return "name: tiny\n"
         "model: {name: mlp, options: {inputs: 16, hidden: [32, 32], classes: 4}}\n"
         "data: {batch: 32}\n" +
         more;
}

std::string endless() {
  return tiny(
      "plan: {pipelines: 2, stages: 2, micro_batches: 2}\n"
      "train: {iterations: 300000, stall_limit: 60 s, optimizer: {kind: sgd, lr: 0.01}}\n");
}

}  // namespace millrace::cli
