// Array scripts, sbatch, and the work of one array task.
#include "app/sweep_slurm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

#include <sys/wait.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cell_pool.h"
#include "app/sweep_store.h"
#include "base/log.h"
#include "config/number.h"
#include "storage/write_aside.h"

namespace millrace::app {
namespace {

namespace fs = std::filesystem;

struct Said {
  int code = 0;
  std::string out;
};

// What it says on standard error goes where ours goes.
Said said_by(const std::string& command) {
  Said said;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw SystemError("no process could be started for: " + command);
  std::array<char, 512> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) said.out += part.data();
  const int status = ::pclose(pipe);
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  while (!said.out.empty() && said.out.back() == '\n') said.out.pop_back();
  return said;
}

// Tasks of an array that this site allows.
std::size_t largest_array(const Arguments& arguments) {
  constexpr std::size_t kOfSlurm = 1001;  // where the site does not say
  const Said site = said_by("scontrol show config 2>/dev/null | sed -n 's/^MaxArraySize *= *//p'");
  const auto number = config::parse_integer(site.out);
  std::size_t most = kOfSlurm;
  if (site.code == 0 && number.fault == config::NumberFault::none && number.value > 0) {
    most = static_cast<std::size_t>(number.value);
  }
  return arguments.max_array ? std::min(most, static_cast<std::size_t>(*arguments.max_array)) : most;
}

// As sbatch reads the words of #SBATCH lines.
std::string quoted_option(const std::string& word) {
  std::string text = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

// `file` is a pattern of sbatch, in which % begins a field; a folder's own is doubled.
std::string head(const std::string& name, const fs::path& folder, const std::string& file) {
  std::string output;
  for (const char c : folder.string()) output += c == '%' ? "%%" : std::string(1, c);
  return fmt::format("#!/bin/bash\n#SBATCH --job-name={}\n#SBATCH --output={}\n", quoted_option(name),
                     quoted_option(output + "/" + file));
}

std::string submitted(const Arguments& arguments, const fs::path& script, const std::string& after) {
  std::string command = "sbatch --parsable";
  if (!after.empty()) command += " --dependency=afterany:" + after;
  for (const std::string& option : arguments.sbatch) command += " " + quoted_word(option);
  const Said said = said_by(command + " " + quoted_word(script.string()));
  if (said.code != 0) return "";
  return said.out.substr(0, said.out.find(';'));  // "id;cluster"
}

void write(const fs::path& file, const std::string& text) {
  storage::write_text_aside(file, storage::Existing::replace, text);
}

}  // namespace

std::string quoted_word(const std::string& word) {
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += c;
    }
  }
  return text + "'";
}

fs::path slurm_folder(const Arguments& arguments, const std::string& sweep) {
  return sweep_folder(arguments) / (sweep + ".slurm");
}

std::vector<std::string> submit_sweep(const Arguments& arguments, const std::string& sweep, int ranks,
                                      const std::vector<CellTask>& tasks, const std::string& again) {
  const fs::path folder = fs::absolute(slurm_folder(arguments, sweep));
  const std::string program = quoted_word(fs::read_symlink("/proc/self/exe").string());
  fs::create_directories(folder);
  std::string lines;
  double limit_s = 0;
  for (const CellTask& task : tasks) {
    lines += to_text(task) + "\n";
    if (task.limits.time) limit_s = std::max(limit_s, task.limits.time->value());
  }
  write(folder / "tasks.jsonl", lines);
  // A cell ends itself at its limit; the job's is for one that does not.
  constexpr double kGrace = 120, kMinute = 60;
  std::string minutes;
  if (limit_s > 0) minutes = fmt::format("#SBATCH --time={:.0f}\n", std::ceil((limit_s + kGrace) / kMinute));
  const std::size_t most = largest_array(arguments);
  std::vector<std::string> jobs;
  for (std::size_t first = 0, chunk = 0; first < tasks.size(); first += most, ++chunk) {
    const std::size_t count = std::min(most, tasks.size() - first);
    const fs::path script = folder / fmt::format("array-{:03}.sbatch", chunk);
    write(script, head(sweep, folder, "array-%A_%a.out") + minutes +
                      fmt::format("#SBATCH --array=0-{}%{}\n#SBATCH --ntasks={}\n#SBATCH --requeue\n\n"
                                  "exec {} sweep {} --cell $(({} + SLURM_ARRAY_TASK_ID)) --quiet\n",
                                  count - 1, arguments.throttle, ranks, program,
                                  quoted_word((folder / "tasks.jsonl").string()), first + 1));
    const std::string job = submitted(arguments, script, jobs.empty() ? "" : jobs.back());
    if (job.empty()) {
      throw Error(ExitCode::failed, fmt::format("sbatch refused {}: tasks {} to {} of {} are not submitted",
                                                script.string(), first + 1, tasks.size(), tasks.size()));
    }
    jobs.push_back(job);
  }
  const fs::path script = folder / "merge.sbatch";
  write(script, head(sweep + "-merge", folder, "merge-%j.out") + fmt::format("\nexec {} {} --merge\n", program, again));
  const std::string job = submitted(arguments, script, jobs.back());
  if (job.empty()) {
    throw Error(ExitCode::failed,
                fmt::format("sbatch refused {}: when the arrays have ended, run it by hand", script.string()));
  }
  jobs.push_back(job);
  return jobs;
}

ExitCode work_on_listed(const Arguments& arguments) {
  const fs::path list = arguments.files.front();
  std::ifstream in(list);
  std::string line;
  for (int number = 0; number < *arguments.cell; ++number) {
    if (!std::getline(in, line)) {
      throw InvalidInput(
          fmt::format("{}: has no task {}; `millrace sweep --slurm` writes it", list.string(), *arguments.cell));
    }
  }
  const CellTask task = cell_task_from_text(line);
  write(list.parent_path() / (task.id + ".json"), worked_off(task));
  return ExitCode::done;
}

}  // namespace millrace::app
