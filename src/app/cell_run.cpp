// Files of the cell, fork and exec of mpirun, and its last words.
#include "app/cell_run.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/experiment.h"
#include "base/errors.h"
#include "base/text.h"
#include "storage/file.h"
#include "storage/write_aside.h"

namespace millrace::app {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct CellFiles {
  fs::path experiment, results, out, err;
};

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void redirect(const fs::path& file, int descriptor) {
  const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(126);
}

// Exit code of the job, 128 + signal where one ended it.
int start_and_wait(const std::vector<std::string>& words, const CellFiles& files) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw SystemError(fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // mpirun ends its ranks
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    redirect(files.out, STDOUT_FILENO);
    redirect(files.err, STDERR_FILENO);
    ::execvp(argv.front(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// A job's exit code, and what it said of errors.
struct JobEnd {
  int code = 0;
  std::string said;
};

CellFiles files_of(const CellTask& task, const char* results) {
  const fs::path folder = task.folder;
  return {folder / (task.id + ".yaml"), folder / (task.id + results), folder / (task.id + ".out"),
          folder / (task.id + ".err")};
}

/// This program under mpirun, on the task's ranks and within its limit of time.
JobEnd start_job(const CellTask& task, const CellFiles& files, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"mpirun", "--bind-to", "none", "--oversubscribe", "-n", std::to_string(task.ranks)};
  if (task.limits.time) {
    words.emplace_back("--timeout");
    words.push_back(fmt::format("{:.0f}", std::ceil(task.limits.time->value())));
  }
  words.push_back(fs::read_symlink("/proc/self/exe").string());
  words.insert(words.end(), arguments.begin(), arguments.end());
  JobEnd end;
  end.code = start_and_wait(words, files);
  end.said = content(files.err);
  if (end.code == 127 && end.said.empty()) throw SystemError("mpirun: not found; is Open MPI on the PATH?");
  return end;
}

// What millrace said of the failure, else the first line of anybody: launchers explain themselves after it.
std::string reason_of(const std::string& said, int code) {
  std::string first, error;  // of what was said
  std::size_t begin = 0;
  while (begin < said.size()) {
    const std::size_t end = std::min(said.find('\n', begin), said.size());
    const std::string line = said.substr(begin, end - begin);
    constexpr std::string_view kMark = "error: ";
    if (const auto at = line.find(kMark); error.empty() && at != std::string::npos)
      error = line.substr(at + kMark.size());
    if (first.empty() && line.find_first_not_of("-* ") != std::string::npos) first = line;  // no ruler
    begin = end + 1;
  }
  return fmt::format("{} (exit code {})", error.empty() ? first : error, code);
}

std::string status_of(int code, const std::string& said) {
  if (code == static_cast<int>(ExitCode::infeasible)) return "infeasible";
  return said.find("out of memory") != std::string::npos ? "memory" : "error";
}

json measured_result(const json& document) {
  json result = document.at("plans").at(0);
  for (json& stage : result["stages"]) stage.erase("ops");
  result["stage_count"] = result.at("stages").size();
  result["devices"] = document.at("problem").at("devices");
  result["batch"] = document.at("problem").at("batch");
  for (const char* name : {"iteration_time_s", "throughput_samples_per_s", "peak_memory_bytes"}) {
    result[std::string("predicted_") + name] = result.at(name);
  }
  result.update(document.at("measured"));
  if (document.contains("final_loss")) {  // nothing is learnt on emulated devices
    result["final_loss"] = document.at("final_loss");
    if (document.contains("test")) result["accuracy"] = document.at("test").at("accuracy");
  }
  result["results"] = document.at("results");
  return result;
}

}  // namespace

json run_cell(const CellTask& task) {
  const CellFiles files = files_of(task, ".h5");
  Experiment experiment = experiment_from_text(task.effective);
  experiment.output = files.results.string();
  storage::write_text_aside(files.experiment, storage::Existing::replace, effective_text(experiment));
  const JobEnd end =
      start_job(task, files, {"run", files.experiment.string(), "--format", "json", "--quiet", "--overwrite"});
  constexpr std::string_view kTimedOut = "The user-provided time limit for job execution has been reached";
  if (end.said.find(kTimedOut) != std::string::npos) {
    return failed_cell("timeout", fmt::format("limits.time {}", format(*task.limits.time)));
  }
  if (end.code != 0) return failed_cell(status_of(end.code, end.said), reason_of(end.said, end.code));
  const json document = json::parse(content(files.out));
  const storage::File results = storage::File::open(files.results);
  return {{"status", "done"},
          {"reason", ""},
          {"kind", results.text("kind")},
          {"result", measured_result(document)},
          {"plan", results.text_dataset("plan")}};
}

fs::path profile_cell(const CellTask& task) {
  const CellFiles files = files_of(task, ".profile.h5");
  storage::write_text_aside(files.experiment, storage::Existing::replace, task.effective);
  const JobEnd end =
      start_job(task, files,
                {"profile", files.experiment.string(), "--output", files.results.string(), "--quiet", "--overwrite"});
  if (end.code != 0) throw Error(ExitCode::failed, reason_of(end.said, end.code));
  return files.results;
}

}  // namespace millrace::app
