// `millrace report`, `compare` and `watch` on results of real jobs, and the page in a real browser.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/cli/expect.h"

namespace millrace::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

std::string sweep_text(const std::string& name, const std::string& bandwidth) {
  return "sweep: " + name +
         "\ncommand: simulate\nbase:\n  model: {name: mlp, options: {inputs: 16, hidden: [64, 64], classes: 4}}\n"
         "  data: {batch: 64}\n  cluster: {flat: {devices: 2, bandwidth: " +
         bandwidth +
         "}}\n"
         "matrix: {plan.partitioner: [dp, data_parallel], cluster.flat.devices: [1, 2, 4], plan.memory_limit: [1 GiB, "
         "1 kB]}\n"
         "published: p.csv\n";
}

constexpr const char* kPublished =
    "table,row,select,baseline,metric,form,published,better,why\n"
    "1,speed-up on 4,plan.partitioner=dp; devices=4; plan.memory_limit=1 GiB,"
    "plan.partitioner=dp; devices=1; plan.memory_limit=1 GiB,throughput_samples_per_s,ratio,3.77,higher,a tiny "
    "network\n";

class Report : public testing::Test {
 protected:
  void sweep(const std::string& name, const std::string& bandwidth = "10 GB/s") {
    place_.write("p.csv", kPublished);
    place_.write(name + ".yaml", sweep_text(name, bandwidth));
    const Outcome outcome = place_.run({"sweep", name + ".yaml", "--quiet"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }

  Workplace place_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(Report, Tables) {
  sweep("s");
  const Outcome csv = place_.run({"report", "results/s.h5", "--table", "csv"});
  expect_done(place_, csv);
  std::ifstream written(place_ / "results/s.csv");
  std::ostringstream same;
  same << written.rdbuf();
  EXPECT_EQ(csv.out, same.str());
  const auto lines = lines_of(csv.out);
  ASSERT_THAT(lines, SizeIs(13));
  EXPECT_THAT(lines[0], StartsWith("cell,status,reason,plan.partitioner,cluster.flat.devices,plan.memory_limit,"));
  EXPECT_THAT(lines[2], AllOf(HasSubstr(",infeasible,"), HasSubstr("memory")));

  const Outcome markdown = place_.run({"report", "results/s.h5", "--table", "md"});
  EXPECT_THAT(markdown.out, AllOf(StartsWith("| cell |"), HasSubstr("| scaling |"), HasSubstr("strong")));
  const Outcome latex = place_.run({"report", "results/s.h5", "--table", "latex"});
  EXPECT_THAT(latex.out, AllOf(HasSubstr("\\toprule"), HasSubstr("data\\_parallel")));
  const Outcome paper = place_.run({"report", "results/s.h5", "--paper"});
  expect_done(place_, paper);
  EXPECT_THAT(paper.out,
              AllOf(HasSubstr("published"), HasSubstr("3.77x"), HasSubstr("simulated"), HasSubstr("reached")));
  expect_one_error(place_, place_.run({"report", "results/s.h5", "--table", "html"}), 2, {"unknown --table 'html'"});
  expect_one_error(place_, place_.run({"report", "p.csv"}), 2, {"p.csv"});
}

TEST_F(Report, CompareTellsLossFromChance) {
  sweep("fast");
  sweep("slow", "1 MB/s");
  const Outcome same = place_.run({"compare", "results/fast.h5", "results/fast.h5"});
  expect_done(place_, same);
  const Outcome worse = place_.run({"compare", "results/fast.h5", "results/slow.h5", "--format", "json"});
  EXPECT_EQ(worse.code, 5);
  EXPECT_TRUE(document(worse).at("worse").get<bool>());
  // The other way no throughput is lost; a plan for the faster network may take more memory, which is a loss as well.
  const Outcome better = place_.run({"compare", "results/slow.h5", "results/fast.h5", "--format", "json"});
  int gains = 0;
  const nlohmann::json figures = document(better).at("figures");
  for (const nlohmann::json& figure : figures) {
    if (figure.at("metric") != "throughput_samples_per_s") continue;
    EXPECT_NE(figure.at("verdict"), "worse") << figure;
    gains += figure.at("verdict") == "better" ? 1 : 0;
  }
  EXPECT_GT(gains, 0);
}

TEST_F(Report, WatchFollowsARun) {
  place_.write("e.yaml", tiny("train: {iterations: 30}\n"));
  expect_done(place_, place_.run({"run", "e.yaml", "--quiet"}));
  const Outcome words = place_.run({"watch", "results/tiny.h5"});
  expect_done(place_, words);
  EXPECT_THAT(words.out, AllOf(HasSubstr("iteration 30/30"), HasSubstr("loss"),
                               HasSubstr("complete: 30 of 30 iterations"), Not(HasSubstr("iteration 20/30"))));
  const Outcome stream = place_.run({"watch", "results/tiny.h5", "--follow", "--format", "json"});
  expect_done(place_, stream);
  const auto lines = lines_of(stream.out);
  ASSERT_THAT(lines, SizeIs(31));
  EXPECT_EQ(nlohmann::json::parse(lines[0]).at("iteration"), 1);
  EXPECT_EQ(nlohmann::json::parse(lines[30]).at("status"), "complete");

  place_.write("long.yaml", endless());
  Job job(place_, {"run", "long.yaml", "--overwrite", "--quiet"}, {.ranks = 4});
  job.until("some rows", [&] {
    return std::filesystem::exists(place_ / "results/tiny.h5.lock") &&
           place_.run({"watch", "results/tiny.h5"}).out.find("/300000") != std::string::npos;
  });
  const Outcome running = place_.run({"watch", "results/tiny.h5"});
  EXPECT_THAT(running.out, AllOf(HasSubstr("running: "), HasSubstr(" left")));
}

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, got);
  ::pclose(pipe);
  return output;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST_F(Report, PythonReadsTheResults) {
  sweep("s");
  place_.write("e.yaml", tiny("train: {iterations: 8}\n"));
  expect_done(place_, place_.run({"run", "e.yaml", "--quiet"}));
  const std::string said =
      output_of("cd " + (place_ / "").string() +
                " && /usr/bin/python3 " MILLRACE_SOURCE_DIR "/docs/read_results.py results/s.h5 results/tiny.h5 2>&1");
  EXPECT_THAT(said, AllOf(HasSubstr("12 cells, 6 of them done"), HasSubstr("data_parallel"), HasSubstr("8 iterations"),
                          Not(HasSubstr("Traceback"))));
}

TEST_F(Report, PageOpensInABrowser) {
  sweep("s");
  place_.write("e.yaml", tiny("train: {iterations: 4}\n"));
  expect_done(place_, place_.run({"run", "e.yaml", "--quiet", "--trace"}));
  expect_done(place_, place_.run({"report", "results/s.h5", "results/tiny.h5", "-o", "report.html"}));
  EXPECT_LT(std::filesystem::file_size(place_ / "report.html"), 3U << 20);
  expect_one_error(place_, place_.run({"report", "results/s.h5", "-o", "report.html"}), 2,
                   {"report.html", "--overwrite"});
  if (std::system("command -v chromium > /dev/null") != 0) GTEST_SKIP() << "chromium is not installed";
  const std::string folder = (place_ / "").string();
  const std::string page = output_of(
      "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
      "--enable-logging=stderr --user-data-dir=" +
      folder +
      "profile --virtual-time-budget=5000 "
      "--host-resolver-rules='MAP * ~NOTFOUND' --dump-dom file://" +
      folder + "report.html 2> " + folder + "console");
  std::ifstream in(place_ / "console");
  std::ostringstream console;
  console << in.rdbuf();
  EXPECT_THAT(console.str(), Not(HasSubstr("CONSOLE"))) << "no error and no warning of the page";
  // The library gives a canvas that it drew on its size and style.
  EXPECT_GE(count(page, "<canvas id=\"chart-"), 4U);
  EXPECT_EQ(count(page, "style=\"display: block;"), count(page, "<canvas id=\"chart-"));
  EXPECT_EQ(count(page, "<svg class=\"timeline\""), 1U);
  EXPECT_GE(count(page, "<title>rank 0: forward, stage 0, micro-batch 0"), 1U);
  EXPECT_EQ(count(page, "<h3>Stages: "), 2U);  // of the run and of the fastest cell
  EXPECT_THAT(page,
              AllOf(HasSubstr("data-theme=\"light\""), HasSubstr("<th scope=\"col\"><button type=\"button\">status")));
}

}  // namespace
}  // namespace millrace::cli
