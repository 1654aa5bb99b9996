// Every command as a user types it, alone and on several ranks: exit code, words, files.
#include <cstdio>
#include <fstream>
#include <set>

#include <dlfcn.h>
#include <sys/auxv.h>

#include "cluster/launcher.h"
#include "storage/file.h"
#include "tests/cli/expect.h"
#include "tests/cli/job.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

void expect_keys(const json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) EXPECT_TRUE(object.contains(key)) << key << " is missing in " << object.dump();
}

// The names of INTERFACES 3.
void expect_plan_document(const json& all) {
  expect_keys(all, {"problem", "plans"});
  expect_keys(all.at("problem"), {"ops", "tensors", "edges", "parameters", "devices", "batch"});
  ASSERT_FALSE(all.at("plans").empty());
  for (const json& plan : all.at("plans")) {
    expect_keys(plan, {"partitioner",
                       "order",
                       "schedule",
                       "objective",
                       "objective_value",
                       "micro_batches",
                       "pipelines",
                       "feasible",
                       "why_not",
                       "planning_time_s",
                       "iteration_time_s",
                       "makespan_s",
                       "throughput_samples_per_s",
                       "bottleneck_s",
                       "bound",
                       "bound_source",
                       "objective_unit",
                       "optimality_gap",
                       "certificate",
                       "stopped_by",
                       "peak_memory_bytes",
                       "mean_memory_bytes",
                       "memory_efficiency",
                       "bubble_fraction",
                       "bytes_injected",
                       "node_crossings",
                       "hidden_communication",
                       "balance",
                       "limiting_op",
                       "stages"});
    expect_keys(plan.at("hidden_communication"), {"p2p", "gradients", "tensor"});
    for (const json& stage : plan.at("stages")) {
      expect_keys(stage, {"pipeline", "index", "ops", "op_count", "devices", "shares", "forward_s", "backward_s",
                          "transfer_s", "reduction_s", "live_micro_batches", "send_bytes", "parameter_bytes",
                          "activation_bytes", "memory_bytes"});
      EXPECT_EQ(stage.at("ops").size(), stage.at("op_count").get<std::size_t>());
    }
  }
}

TEST(Commands, RunAloneTrainsAndTellsWhereTheResultsAre) {
  const Workplace place;
  const Outcome run = place.run({"run", place.write("e.yaml", tiny("train: {iterations: 3}\n"))});
  expect_done(place, run);
  EXPECT_THAT(run.out, AllOf(HasSubstr("tiny: mlp on 1 rank, 1 pipeline,"), HasSubstr("measured"),
                             HasSubstr("predicted"), HasSubstr("final loss"), HasSubstr("results: results/tiny.h5")));
  EXPECT_EQ(storage::File::open(place / "results/tiny.h5").text("status"), "complete");
  EXPECT_FALSE(std::filesystem::exists(place / "results/tiny.h5.lock"));
}

TEST(Commands, RunOnFourRanksPrintsOneDocument) {
  const Workplace place;
  const std::string plan =
      "plan: {pipelines: 2, stages: 2, micro_batches: 2}\ntrain: {iterations: 4, evaluate_every: 2}\n";
  const Outcome run =
      place.run({"run", place.write("e.yaml", tiny(plan)), "--format", "json", "--quiet", "--trace"}, {4});
  expect_done(place, run);
  EXPECT_EQ(run.err, "");
  const json all = document(run);
  expect_plan_document(all);
  expect_keys(all, {"measured", "prediction_error", "final_loss", "test", "results"});
  expect_keys(all.at("measured"), {"iteration_time_s", "throughput_samples_per_s", "peak_memory_bytes",
                                   "mean_memory_bytes", "memory_efficiency", "bubble_fraction", "peak_rss_bytes"});
  expect_keys(all.at("prediction_error"), {"iteration_time", "peak_memory"});
  EXPECT_EQ(all.at("plans")[0].at("pipelines"), 2);

  const storage::File file = storage::File::open(place / "results/tiny.h5");
  EXPECT_EQ(file.table("iterations").rows(), 4U);
  EXPECT_EQ(file.table("evaluation").column_integers("iteration"), (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(file.table("ranks").column_integers("rank"), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_GT(file.table("instructions").rows(), 16U);
  EXPECT_EQ(file.integer("ranks"), 4);
}

TEST(Commands, RanksThatTakeTurnsOnACoreAreNoMeasurement) {
  const Workplace place;
  place.write("e.yaml", tiny("train: {iterations: 2}\nplan: {pipelines: 1, stages: 1}\n"));
  const auto kind_with = [&](int ranks) {
    JobOptions options{ranks};
    options.before = {"taskset", "-c", "0"};
    const Outcome run = place.run({"run", "e.yaml", "--overwrite", "--set", "costs=measured"}, options);
    expect_done(place, run);
    EXPECT_EQ(run.err.find("ranks take turns on the cores") != std::string::npos, ranks > 1) << run.err;
    const std::string kind = storage::File::open(place / "results/tiny.h5").text("kind");
    EXPECT_THAT(run.out, HasSubstr(kind));
    return kind;
  };
  EXPECT_EQ(kind_with(1), "measured");
  EXPECT_EQ(kind_with(2), "oversubscribed");
}

// Threads get stacks that no system has room for: planning goes on without them.
TEST(Commands, PlansWhereThreadsAreRefused) {
  const Workplace place;
  place.write("e.yaml", tiny("plan: {schedule: [gpipe, 1f1b]}\n"));
  JobOptions options;
  options.before = {"prlimit", "--stack=35184372088832"};
  const Outcome refused = place.run({"plan", "e.yaml", "--ranks", "2", "--format", "json"}, options);
  expect_done(place, refused);
  const Outcome granted = place.run({"plan", "e.yaml", "--ranks", "2", "--format", "json"});
  for (const char* figure : {"schedule", "stages", "iteration_time_s"}) {
    EXPECT_EQ(document(refused).at("plans").at(0).at(figure), document(granted).at("plans").at(0).at(figure)) << figure;
  }
}

// As libgomp had it from the start: it looks at the environment before main().
TEST(Commands, ThreadsWaitPassivelyUnlessTheUserSaysHow) {
  for (const std::string policy : {"", "active"}) {
    const Workplace place;
    place.write("e.yaml", endless());
    JobOptions options{};
    if (!policy.empty()) options.environment = {{"OMP_WAIT_POLICY", policy}};
    Job job(place, {"run", "e.yaml", "--overwrite", "--set", "plan.stages=1", "--set", "plan.pipelines=1"}, options);
    job.until("it made its results", [&] { return std::filesystem::exists(place / "results/tiny.h5"); });
    const std::string environment = text_of("/proc/" + std::to_string(place.processes().front()) + "/environ");
    EXPECT_THAT(environment, HasSubstr("OMP_WAIT_POLICY=" + (policy.empty() ? "passive" : policy)));
    EXPECT_THAT(environment, HasSubstr("GLIBC_TUNABLES=glibc.malloc.tcache_count=0"));
    EXPECT_EQ(text_of("/proc/" + std::to_string(place.processes().front()) + "/comm"), "millrace\n");
  }
}

// As packages do that bring their own C library: /proc/self/exe is the loader then.
TEST(Commands, RunsWhereTheLoaderIsCalledByName) {
  Dl_info loader{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(::getauxval(AT_BASE)), &loader), 0);
  const Workplace place;
  place.write("e.yaml", tiny("train: {iterations: 2, evaluate_every: off}\n"));
  JobOptions options;
  options.before = {loader.dli_fname};
  expect_done(place, place.run({"run", "e.yaml", "--quiet"}, options));
}

TEST(Commands, ADescribedClusterIsSaidToBeElsewhere) {
  const Workplace place;
  place.write("e.yaml", tiny("train: {iterations: 2}\ncluster: {flat: {devices: 2, bandwidth: 1 GB/s}}\n"));
  const Outcome run = place.run({"run", "e.yaml"}, {2});
  expect_done(place, run);
  EXPECT_THAT(run.err, AllOf(HasSubstr("is where the plan and the prediction are for"), HasSubstr("the 2 ranks here")));
}

TEST(Commands, SpeedUpIsAgainstABaseline) {
  const Workplace place;
  place.write("e.yaml", tiny("train: {iterations: 6, evaluate_every: off}\n"));
  expect_done(place, place.run({"run", "e.yaml", "--quiet"}));
  std::filesystem::rename(place / "results/tiny.h5", place / "one.h5");
  const Outcome outcome = place.run({"run", "e.yaml", "--quiet", "--format", "json", "--baseline", "one.h5"});
  expect_done(place, outcome);
  const json measured = document(outcome).at("measured");
  const double before = storage::File::open(place / "one.h5").group("summary").real("throughput_samples_per_s");
  EXPECT_DOUBLE_EQ(measured.at("speed_up"), measured.at("throughput_samples_per_s").get<double>() / before);
  EXPECT_EQ(measured.at("scaling_efficiency"), measured.at("speed_up"));  // as many devices
  EXPECT_EQ(storage::File::open(place / "results/tiny.h5").group("summary").real("speed_up"), measured.at("speed_up"));
  // What is emulated is not held against it.
  place.write("f.yaml", tiny("cluster: {flat: {devices: 1, bandwidth: 1 GB/s}, emulated: true}\n"
                             "train: {iterations: 6}\noutput: f.h5\n"));
  expect_one_error(place, place.run({"run", "f.yaml", "--baseline", "one.h5"}), 2,
                   {"one.h5: is measured, this run is emulated: they are not compared"});
  EXPECT_FALSE(std::filesystem::exists(place / "f.h5"));
}

TEST(Commands, ResultsHoldWhatIsNeededToRunThemAgain) {
  const Workplace place;
  const std::string more = "seed: 4\nplan: {stages: 2, pipelines: 1, micro_batches: 4}\ntrain: {iterations: 5}\n";
  const Outcome first = place.run({"run", place.write("e.yaml", tiny(more)), "--set", "train.optimizer.lr=0.1"}, {2});
  expect_done(place, first);
  const storage::File file = storage::File::open(place / "results/tiny.h5");
  for (const char* name : {"iterations", "evaluation", "ranks"}) {
    const storage::Table table = file.table(name);
    EXPECT_EQ(table.integer("rows"), static_cast<std::int64_t>(table.rows()));
    EXPECT_TRUE(table.has("unit") && table.has("description")) << name;
  }
  const std::vector<double> loss = file.table("iterations").column_reals("loss");
  ASSERT_EQ(loss.size(), 5U);
  EXPECT_EQ(file.table("iterations").column_integers("iteration"), (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(file.table("iterations").column_integers("samples").back(), 160);
  EXPECT_THAT(file.text("command"), AllOf(HasSubstr("run e.yaml"), HasSubstr("--set train.optimizer.lr=0.1")));

  place.write("again/config.yaml", file.text_dataset("config"));
  expect_done(place, place.run({"run", "again/config.yaml", "--output", "again"}, {2}));
  EXPECT_EQ(storage::File::open(place / "again/tiny.h5").table("iterations").column_reals("loss"), loss);

  place.write("plan.yaml", file.text_dataset("plan"));
  const Outcome searched = place.run({"plan", "e.yaml", "--ranks", "2", "--format", "json"});
  const Outcome given =
      place.run({"plan", "e.yaml", "--ranks", "2", "--format", "json", "--set", "plan.file=plan.yaml"});
  expect_plan_document(document(given));
  EXPECT_EQ(document(given).at("plans")[0].at("iteration_time_s"),
            document(searched).at("plans")[0].at("iteration_time_s"));
}

TEST(Commands, APlanIsWrittenEditedAndRun) {
  const Workplace place;
  place.write("e.yaml", tiny("train: {iterations: 2}\n"));
  const Outcome plan =
      place.run({"plan", "e.yaml", "--ranks", "3", "-o", "p.yaml", "--explain", "--set", "plan.stages=3"});
  expect_done(place, plan);
  EXPECT_THAT(plan.out, AllOf(HasSubstr("partitioner"), HasSubstr("linear0"), HasSubstr("weights")));
  EXPECT_THAT(text_of(place / "p.yaml"), StartsWith("millrace_plan: 1"));
  expect_one_error(place, place.run({"plan", "e.yaml", "--ranks", "3", "-o", "p.yaml"}), 2, {"p.yaml", "--overwrite"});
  place.write("sub/f.yaml",
              tiny("plan: {file: ../p.yaml}\ntrain: {iterations: 2}\n"));  // beside the file that names it
  const Outcome run = place.run({"run", "sub/f.yaml", "--format", "json"}, {3});
  expect_done(place, run);
  EXPECT_EQ(document(run).at("plans")[0].at("partitioner"), "file");
  EXPECT_EQ(document(run).at("plans")[0].at("stages").size(), 3U);
}

TEST(Commands, PlanSimulateAndCheckPrintOneDocument) {
  const Workplace place;
  place.write("e.yaml", tiny());
  for (const char* command : {"plan", "simulate", "check"}) {
    const Outcome outcome = place.run({command, "e.yaml", "--ranks", "4", "--format", "json"});
    expect_done(place, outcome);
    expect_plan_document(document(outcome));
    EXPECT_EQ(document(outcome).at("problem").at("devices"), 4) << command;
  }
}

TEST(Commands, UnderALauncherTheRanksOfTheJobCount) {
  const Workplace place;
  place.write("e.yaml", tiny());
  for (const char* command : {"plan", "simulate", "check"}) {
    const Outcome outcome = place.run({command, "e.yaml", "--format", "json"}, {2});
    expect_done(place, outcome);
    expect_plan_document(document(outcome));
    EXPECT_EQ(document(outcome).at("problem").at("devices"), 2) << command;
  }
}

TEST(Commands, SimulateDrawsThePipeline) {
  const Workplace place;
  place.write("e.yaml", tiny("plan: {pipelines: 1, stages: 2, micro_batches: 4}\n"));
  const Outcome outcome =
      place.run({"simulate", "e.yaml", "--ranks", "2", "--svg", "t.svg", "--trace", "t.json", "--timeline"});
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("simulated: iteration"), HasSubstr("live micro-batches"), HasSubstr("rank    1 |")));
  EXPECT_THAT(text_of(place / "t.svg"), AllOf(HasSubstr("<svg"), HasSubstr("</svg>")));
  std::set<int> iterations;  // all that were simulated
  const json trace = json::parse(text_of(place / "t.json"));
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") iterations.insert(event.at("args").at("iteration").get<int>());
  }
  EXPECT_THAT(iterations, testing::ElementsAre(0, 1, 2));
}

TEST(Commands, CheckPrintsTheEffectiveExperiment) {
  const Workplace place;
  place.write("e.yaml", tiny());
  const Outcome outcome = place.run({"check", "e.yaml", "--ranks", "2", "--verbose"});
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("time_limit: 10 s"), HasSubstr("verified"), HasSubstr("threads")));
}

TEST(Commands, CheckTellsWhatEpochsLeaveOut) {  // REPORTS D04
  const Workplace place;
  place.write("e.yaml", std::string("name: e\nmodel: {name: lenet}\ndata: {source: ") + kSample + ", batch: 48}\n");
  const Outcome outcome = place.run({"check", "e.yaml"});
  expect_done(place, outcome);
  std::int64_t train = 0, out = 0;
  const std::string line = outcome.out.substr(outcome.out.find("data "));
  ASSERT_EQ(
      std::sscanf(line.c_str(), "data %ld training and %*d test samples; each epoch leaves out %ld", &train, &out), 2)
      << line;
  EXPECT_EQ(out, train % 48);
  const Outcome whole = place.run({"check", "e.yaml", "--set", "data.tail=uneven"});
  EXPECT_THAT(whole.out, testing::Not(HasSubstr("leaves out")));
}

TEST(Commands, VerifyComparesWithOneRank) {
  const Workplace place;
  place.write("e.yaml", tiny("plan: {pipelines: 2, stages: 2, micro_batches: 2}\n"));
  const Outcome outcome = place.run({"verify", "e.yaml", "--format", "json", "--iterations", "2"}, {4});
  expect_done(place, outcome);
  const json all = document(outcome);
  EXPECT_EQ(all.at("equal"), true);
  EXPECT_LE(all.at("parameters"), 1e-5);
  EXPECT_EQ(all.at("iterations"), 2);
  // Schedules that deal stages or pair pipelines have an order on one rank, too.
  for (const char* plan : {"plan={schedule: interleaved, pipelines: 1, stages: 4, micro_batches: 2}",
                           "plan={schedule: zb-v, pipelines: 1, stages: 4, micro_batches: 2}"}) {
    expect_done(place, place.run({"verify", "e.yaml", "--iterations", "2", "--set", plan}, {2}));
  }
}

TEST(Commands, VerifySaysWhyAnAsynchronousScheduleDiffers) {
  const Workplace place;
  place.write("e.yaml", tiny("plan: {schedule: pipedream, pipelines: 1, stages: 2, micro_batches: 4}\n"));
  const Outcome outcome = place.run({"verify", "e.yaml"}, {2});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("DIFFERENT"), HasSubstr("schedule pipedream is asynchronous")));
}

TEST(Commands, ListsNameWhatIsBuiltInWithItsOptions) {
  const Workplace place;
  for (const auto& [command, name] : {std::pair("models", "mlp"), {"partitioners", "dp"}, {"schedules", "1f1b"}}) {
    const Outcome outcome = place.run({command, "--format", "json"});
    expect_done(place, outcome);
    bool found = false;
    for (const json& row : document(outcome)) {
      expect_keys(row, {"name", "description", "options", "capabilities"});
      found = found || row.at("name") == name;
    }
    EXPECT_TRUE(found) << name;
    EXPECT_THAT(place.run({command}).out, HasSubstr(name));
  }
}

TEST(Commands, DataConvertsTextThatThenTrains) {
  const Workplace place;
  const Outcome outcome = place.run({"data", MILLRACE_SOURCE_DIR "/data/sample.txt", "-o", "d.h5", "--name", "words"});
  expect_done(place, outcome);
  EXPECT_EQ(storage::File::open(place / "d.h5").text("name"), "words");
  expect_one_error(place, place.run({"data", MILLRACE_SOURCE_DIR "/data/sample.txt", "-o", "d.h5"}), 2,
                   {"d.h5", "--overwrite"});
  const std::string classes = std::to_string(storage::File::open(place / "d.h5").texts("classes").size());
  place.write("e.yaml",
              "name: words\n"
              "model: {name: gpt, options: {layers: 1, width: 8, heads: 2, sequence: 4, vocabulary: " +
                  classes +
                  "}}\n"
                  "data: {source: d.h5, batch: 4}\ntrain: {iterations: 2}\n");
  expect_done(place, place.run({"run", "e.yaml"}, {2}));
}

TEST(Commands, RealImagesTrainFromAnotherWorkingFolder) {
  const Workplace place;
  std::filesystem::create_directories(place / "experiments/data");
  std::filesystem::copy_file(kSample, place / "experiments/data/images.h5");
  place.write("experiments/e.yaml",
              "name: images\nmodel: {name: lenet}\ndata: {source: data/images.h5, batch: 64}\n"
              "plan: {pipelines: 2, stages: 2, micro_batches: 4}\ntrain: {iterations: 3, optimizer: {kind: adamw}}\n");
  const Outcome outcome = place.run({"run", "experiments/e.yaml", "--format", "json"}, {4});
  expect_done(place, outcome);
  EXPECT_GT(document(outcome).at("test").at("accuracy"), 0.1);
  EXPECT_TRUE(std::filesystem::exists(place / "results/images.h5"));
}

TEST(Commands, EveryCommandHasHelp) {
  const Workplace place;
  const Outcome help = place.run({"--help"});
  expect_done(place, help);
  for (const char* command : {"run", "plan", "check", "verify", "simulate", "data", "models", "partitioners",
                              "schedules", "clusters", "doctor"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const Outcome own = place.run({command, "--help"});
    expect_done(place, own);
    EXPECT_THAT(own.out, HasSubstr("--help"));
  }
  EXPECT_THAT(place.run({"--version"}).out,
              AllOf(HasSubstr("millrace "), HasSubstr("MPI"), HasSubstr("HDF5"), HasSubstr("oneDNN")));
}

TEST(Commands, DoctorFindsThisMachineWell) {
  const Workplace place;
  const Outcome outcome = place.run({"doctor", "--format", "json"}, {2});
  expect_done(place, outcome);
  for (const json& check : document(outcome)) expect_keys(check, {"check", "found", "hint", "ok"});
}

TEST(Commands, DoctorNotesThreadsBeyondTheCores) {
  const Workplace place;
  JobOptions options{1};
  options.before = {"taskset", "-c", std::to_string(cluster::affinity_cores().front())};
  options.environment = {{"OMP_NUM_THREADS", "8"}};
  const Outcome outcome = place.run({"doctor"}, options);
  expect_done(place, outcome);
  EXPECT_THAT(outcome.out, HasSubstr("OMP_NUM_THREADS 8 exceeds the 1 core"));
}

}  // namespace
}  // namespace millrace::cli
