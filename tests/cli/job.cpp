// fork, exec and /proc.
#include "tests/cli/job.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace::cli {
namespace {

using std::chrono::milliseconds;

constexpr double kPatience_s = 120;
constexpr double kEnding_s = 5;
constexpr double kReaping_s = 10;
constexpr milliseconds kPause{10};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Letter of the state of a process ("R", "S", "T", "Z"); empty if it is gone.
std::string state(pid_t pid) {
  const std::string stat = content("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? "" : stat.substr(name_end + 2, 1);
}

/// Wait statuses of the children of `parent` that have ended without being waited for.
std::vector<int> unreaped(pid_t parent) {
  constexpr int kParent = 1, kStatus = 49;  // fields of /proc/PID/stat after the state: proc(5), 4 and 52
  std::vector<int> statuses;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().string().front())) == 0) continue;
    const std::string stat = content(entry.path() / "stat");
    std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
    const std::vector<std::string> all{std::istream_iterator<std::string>(fields), {}};
    if (all.size() <= kStatus || all[0] != "Z" || all[kParent] != std::to_string(parent)) continue;
    statuses.push_back(std::stoi(all[kStatus]));
  }
  return statuses;
}

std::string variable(pid_t pid, const std::string& name) {
  std::istringstream all(content("/proc/" + std::to_string(pid) + "/environ"));
  for (std::string entry; std::getline(all, entry, '\0');) {
    if (entry.rfind(name + "=", 0) == 0) return entry.substr(name.size() + 1);
  }
  return "";
}

std::vector<std::string> command_of(const std::vector<std::string>& words, const JobOptions& options) {
  std::vector<std::string> command = options.before;
  if (options.ranks > 0) {
    for (const char* word : {"mpirun", "--bind-to", "none", "-n"}) command.emplace_back(word);
    command.push_back(std::to_string(options.ranks));
  }
  if (!options.script.empty()) {
    command.emplace_back("sh");
    command.push_back(options.script);
  }
  command.emplace_back(MILLRACE_PROGRAM);
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

std::vector<std::string> Outcome::errors() const {
  std::vector<std::string> found;
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("millrace: ", 0) == 0 && line.find("error: ") != std::string::npos) found.push_back(line);
  }
  return found;
}

std::string Workplace::write(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories((folder_ / name).parent_path());
  std::ofstream(folder_ / name) << text;
  return name;
}

Outcome Workplace::run(const std::vector<std::string>& words, const JobOptions& options) const {
  return Job(*this, words, options).wait();
}

std::vector<pid_t> Workplace::processes() const {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (std::isdigit(static_cast<unsigned char>(name.front())) == 0) continue;
    std::error_code gone;
    const std::filesystem::path folder = std::filesystem::read_symlink(entry.path() / "cwd", gone);
    if (gone || folder != folder_.path()) continue;
    const pid_t pid = std::stoi(name);
    const std::string letter = state(pid);
    if (!letter.empty() && letter != "Z" && letter != "X") found.push_back(pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<pid_t> Workplace::left_over() const {
  std::vector<pid_t> found = processes();
  for (const double start = now(); !found.empty() && now() - start < kEnding_s; found = processes()) {
    std::this_thread::sleep_for(kPause);
  }
  return found;
}

Job::Job(const Workplace& place, const std::vector<std::string>& words, const JobOptions& options)
    : place_(place), ranks_(options.ranks), started_(now()) {
  std::vector<std::string> command = command_of(words, options);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ != 0) return;
  if (::chdir(place.folder_.path().c_str()) != 0) std::_Exit(126);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  const int in = ::open("/dev/null", O_RDONLY);
  const int out = ::open(".out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err = ::open(".err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execvp(argv.front(), argv.data());
  std::_Exit(127);
}

Job::~Job() {
  if (pid_ < 0) return;
  kill_all();
  ::waitpid(pid_, nullptr, 0);
}

void Job::kill_all() const {
  for (const pid_t pid : place_.processes()) ::kill(pid, SIGKILL);
}

Outcome Job::wait() {
  int status = 0;
  double last_alive = now();
  bool given_up = false;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (now() - started_ > kPatience_s) {
      if (!given_up) ADD_FAILURE() << "the job did not end by itself: " << content(place_ / ".err");
      given_up = true;
      kill_all();
    }
    std::this_thread::sleep_for(kPause);
    // mpirun of Open MPI 4.1 now and then stays for good in PMIx_server_finalize after ranks have failed. It has not
    // waited for them then: what they ended with is known all the same.
    if (ranks_ == 0 || now() - last_alive < kReaping_s) continue;
    const std::vector<int> ended = unreaped(pid_);
    if (ended.size() < static_cast<std::size_t>(ranks_)) {
      last_alive = now();
      continue;
    }
    kill_all();
    ::waitpid(pid_, nullptr, 0);
    const auto failed = std::find_if(ended.begin(), ended.end(), [](int code) { return code != 0; });
    status = failed == ended.end() ? 0 : *failed;
    break;
  }
  pid_ = -1;
  return {code_of(status), content(place_ / ".out"), content(place_ / ".err")};
}

void Job::until(const std::string& what, const std::function<bool()>& holds) const {
  for (const double start = now(); !holds(); std::this_thread::sleep_for(kPause)) {
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT | WNOHANG);
    if (ended.si_pid != 0) throw std::runtime_error("the job ended before " + what + ": " + content(place_ / ".err"));
    if (now() - start > kPatience_s) throw std::runtime_error("a minute passed before " + what);
  }
}

pid_t Job::rank(int number) const {
  pid_t wanted = -1;
  until("all ranks ran", [&] {
    int running = 0;
    for (const pid_t pid : place_.processes()) {
      const std::string text = variable(pid, "OMPI_COMM_WORLD_RANK");
      if (text.empty()) continue;
      ++running;
      if (text == std::to_string(number)) wanted = pid;
    }
    return running == ranks_;
  });
  return wanted;
}

}  // namespace millrace::cli
