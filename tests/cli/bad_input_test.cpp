// Bad input: one message from one rank, the documented exit code, no process left, results readable (INTERFACES 1, 9).
#include <fstream>

#include "storage/dataset.h"
#include "storage/file.h"
#include "storage/file_lock.h"
#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string images(const std::string& more) {
  return "name: images\nmodel: {name: lenet}\n" + more +
         "plan: {pipelines: 2, stages: 2, micro_batches: 4}\n"
         "train: {iterations: 2}\n";
}

TEST(BadInput, MissingDataFile) {
  const Workplace place;
  place.write("e.yaml", images("data: {source: nothing.h5, batch: 64}\n"));
  expect_one_error(place, place.run({"run", "e.yaml"}, {4}), 2, {"e.yaml:3:", "data.source", "nothing.h5"});
  expect_one_error(place, place.run({"check", "e.yaml", "--ranks", "4"}), 2, {"nothing.h5"});
}

TEST(BadInput, TruncatedDataFile) {
  const Workplace place;
  std::filesystem::copy_file(kSample, place / "cut.h5");
  std::filesystem::resize_file(place / "cut.h5", std::filesystem::file_size(kSample) / 2);
  place.write("e.yaml", images("data: {source: cut.h5, batch: 64}\n"));
  expect_one_error(place, place.run({"run", "e.yaml"}, {4}), 2, {"cut.h5", "truncated"});
}

TEST(BadInput, DataFileOfAnotherKind) {
  const Workplace place;
  place.write("notes.h5", "these are notes\n");
  place.write("e.yaml", images("data: {source: notes.h5, batch: 64}\n"));
  expect_one_error(place, place.run({"run", "e.yaml"}, {4}), 2, {"notes.h5"});
}

TEST(BadInput, LabelsBeyondTheClasses) {
  const Workplace place;
  std::filesystem::copy_file(kSample, place / "odd.h5");
  {
    const storage::FileLock lock(place / "odd.h5");
    storage::File file = storage::File::modify(lock);
    storage::Dataset labels = file.group("train").dataset("labels");
    std::vector<std::int64_t> values(static_cast<std::size_t>(labels.rows()));
    labels.read(std::span(values));
    values.at(17) = 10;
    labels.write<std::int64_t>(values);
    file.close();
  }
  place.write("e.yaml", images("data: {source: odd.h5, batch: 64}\n"));
  expect_one_error(place, place.run({"run", "e.yaml"}, {4}), 2, {"odd.h5", "label 10 of sample 17", "0 .. 9"});
}

TEST(BadInput, MoreClassesThanTheModelHas) {
  const Workplace place;
  place.write("e.yaml", images(std::string("data: {source: ") + kSample + ", batch: 64}\n"));
  expect_one_error(place, place.run({"run", "e.yaml", "--set", "model.options.classes=5"}, {4}), 2,
                   {"10 classes", "model.options.classes to 10"});
  expect_one_error(place, place.run({"run", "e.yaml", "--set", "model.options.image=32"}, {4}), 2,
                   {"shape", "28", "32"});
}

TEST(BadInput, BatchSmallerThanItsMicroBatches) {
  const Workplace place;
  place.write("e.yaml", images("data: {batch: 7}\n"));
  expect_one_error(place, place.run({"run", "e.yaml"}, {4}), 2, {"data.batch 7", "2 x plan.micro_batches 4 = 8"});
}

TEST(BadInput, MoreStagesThanOperators) {
  const Workplace place;
  place.write("e.yaml", tiny());
  expect_one_error(place, place.run({"plan", "e.yaml", "--ranks", "8", "--set", "plan.stages=8"}), 2,
                   {"8 stages", "6 operators"});
  expect_one_error(place, place.run({"run", "e.yaml", "--set", "plan.stages=8"}, {8}), 2, {"8 stages", "6 operators"});
}

TEST(BadInput, PlanForAnotherGraph) {
  const Workplace place;
  place.write("e.yaml", tiny());
  place.write("f.yaml", tiny("plan: {file: p.yaml}\n"));
  expect_done(place, place.run({"plan", "e.yaml", "--ranks", "2", "-o", "p.yaml"}));
  expect_one_error(place, place.run({"run", "f.yaml", "--set", "model.options.hidden=[32, 33]"}, {2}), 2,
                   {"p.yaml:3:", "graph_digest"});
}

TEST(BadInput, RanksThatThePlanDoesNotUse) {
  const Workplace place;
  place.write("e.yaml", tiny("plan: {pipelines: 2, stages: 2}\n"));
  place.write("f.yaml", tiny("plan: {file: p.yaml}\n"));
  expect_done(place, place.run({"plan", "e.yaml", "--ranks", "4", "-o", "p.yaml"}));
  for (const int ranks : {3, 6}) {
    const Outcome outcome = place.run({"run", "f.yaml"}, {ranks});
    expect_one_error(place, outcome, 2, {});
    ASSERT_EQ(outcome.errors().size(), 1U);
    EXPECT_THAT(outcome.errors()[0],
                AllOf(HasSubstr("uses 4 devices"), HasSubstr("has " + std::to_string(ranks) + " ranks")));
  }
  expect_one_error(place, place.run({"run", "e.yaml"}, {3}), 2, {"needs 4 ranks", "the job has 3"});
}

TEST(BadInput, EditedPlansThatAreNoCover) {
  const Workplace place;
  place.write("e.yaml", tiny("plan: {pipelines: 1, stages: [[linear0, relu0], [linear1, relu1, linear2, loss]]}\n"));
  expect_done(place, place.run({"plan", "e.yaml", "--ranks", "2", "-o", "p.yaml"}));
  std::ifstream in(place / "p.yaml");
  const std::string plan{std::istreambuf_iterator<char>(in), {}};
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string edited = plan;
    ASSERT_NE(edited.find(from), std::string::npos) << plan;
    edited.replace(edited.find(from), from.size(), to);
    place.write("q.yaml", edited);
    expect_one_error(place, place.run({"check", "e.yaml", "--ranks", "2", "--set", "plan.file=q.yaml"}), 2,
                     {"q.yaml", "relu0"});
  };
  const auto at = plan.find("devices: [1]");
  ASSERT_NE(at, std::string::npos) << plan;
  place.write("q.yaml", std::string(plan).replace(at, 12, "devices: [9]"));
  expect_one_error(place, place.run({"check", "e.yaml", "--ranks", "2", "--set", "plan.file=q.yaml"}), 2,
                   {"q.yaml", "device 9 does not exist; the cluster has devices 0 to 1"});
  refused("[linear0 .. relu0]", "[linear0]");
  refused("[linear1 .. loss]", "[relu0 .. loss]");
}

TEST(BadInput, ResultsThatExistAreNotReplacedUnasked) {
  const Workplace place;
  place.write("e.yaml", tiny("train: {iterations: 2}\n"));
  expect_done(place, place.run({"run", "e.yaml"}));
  expect_one_error(place, place.run({"run", "e.yaml", "--set", "train.iterations=3"}, {2}), 2,
                   {"results/tiny.h5", "--overwrite"});
  EXPECT_EQ(storage::File::open(place / "results/tiny.h5").table("iterations").rows(), 2U);
  expect_done(place, place.run({"run", "e.yaml", "--set", "train.iterations=3", "--overwrite"}, {2}));
  EXPECT_EQ(storage::File::open(place / "results/tiny.h5").table("iterations").rows(), 3U);
}

TEST(BadInput, OutputThatCannotBeMade) {
  const Workplace place;
  place.write("file", "in the way\n");
  place.write("e.yaml", tiny("train: {iterations: 2}\n"));
  expect_one_error(place, place.run({"run", "e.yaml", "--output", "file/x"}, {2}), 4, {"file/x", "Not a directory"});
}

// What the message says would do.
std::string bytes_of(const Outcome& refused) {
  const std::size_t end = refused.err.find(" bytes)"), begin = refused.err.rfind('(', end) + 1;
  return end == std::string::npos ? "?" : refused.err.substr(begin, end - begin);
}

std::string limit_of(const Outcome& refused) { return "plan.memory_limit=" + bytes_of(refused) + " B"; }

TEST(BadInput, NoPlanFitsInMemory) {
  const Workplace place;
  place.write("e.yaml", tiny("plan: {memory_limit: 1 KiB}\ntrain: {iterations: 2}\n"));
  const Outcome run = place.run({"run", "e.yaml"}, {2});
  expect_one_error(place, run, 3, {"no plan fits", "stage 0 of pipeline 0"});
  // That is what the devices hold, not what the search counts: it is enough at once.
  const std::string enough = limit_of(run);
  expect_done(place, place.run({"plan", "e.yaml", "--ranks", "2", "--set", enough}));
  expect_done(place, place.run({"run", "e.yaml", "--set", enough}, {2}));

  const Outcome plan = place.run({"plan", "e.yaml", "--ranks", "2", "--format", "json"});
  EXPECT_EQ(plan.code, 3);
  EXPECT_TRUE(document(plan).at("plans").empty());
  // A search that time ends names what is enough, not what is least.
  const std::string why_not = document(plan).at("why_not");
  EXPECT_THAT(why_not, HasSubstr("the smallest memory that one fits in is"));
  const std::size_t end = why_not.find(" bytes)"), begin = why_not.rfind('(', end) + 1;
  const std::string named = "plan.memory_limit=" + why_not.substr(begin, end - begin) + " B";
  expect_done(place, place.run({"plan", "e.yaml", "--ranks", "2", "--set", named}));
}

TEST(BadInput, ConfigurationErrorsAreToldTogetherAndOnce) {
  const Workplace place;
  place.write("e.yaml", tiny("plan: {stags: 2}\ntrain: {iterations: 0.1}\n"));
  const Outcome outcome = place.run({"run", "e.yaml"}, {3});
  expect_one_error(place, outcome, 2,
                   {"e.yaml:4:", "'stags' (did you mean 'stages'?)", "e.yaml:5:", "train.iterations"});
  EXPECT_EQ(outcome.err.find("'stags'"), outcome.err.rfind("'stags'"));
}

TEST(BadInput, UsageErrorsAreToldOnce) {
  const Workplace place;
  expect_one_error(place, place.run({"rum", "e.yaml"}, {2}), 2, {"'rum' (did you mean 'run'?)"});
  expect_one_error(place, place.run({"run", "nothing.yaml"}, {2}), 2, {"nothing.yaml: no such file"});
  expect_one_error(place, place.run({}), 2, {"no command given"});
}

TEST(BadInput, SeparateWorldsAreRefusedWithAHint) {
  const Workplace place;
  place.write("e.yaml", tiny());
  JobOptions options;
  options.environment = {{"SLURM_STEP_NUM_TASKS", "4"}, {"OMPI_MCA_ess", "singleton"}};
  const Outcome outcome = place.run({"run", "e.yaml"}, options);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("srun started 4 tasks (SLURM_STEP_NUM_TASKS)"), HasSubstr("--mpi=pmix")));
}

}  // namespace
}  // namespace millrace::cli
