// One writer a file: FILE.lock says which process on which host writes FILE (INTERFACES 9).
#include "storage/file_lock.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errors.h"
#include "base/log.h"
#include "storage/descriptor.h"

namespace millrace::storage {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string job_id() {
  for (const char* variable : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}) {
    if (const char* value = std::getenv(variable)) return value;
  }
  return "none";
}

struct ProcessState {
  std::uint64_t started = 0;  ///< 0 if the process is gone or the system does not tell
  bool ended = false;         ///< killed, but its parent has not looked yet: it writes nothing any more
};

/// Fields 3 and 22 of /proc/PID/stat.
ProcessState state_of(std::int64_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(in, line);
  const std::size_t name_end = line.rfind(')');  // the name before it may hold blanks
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  ProcessState state;
  std::string field;
  fields >> field;
  state.ended = field == "Z" || field == "X";
  for (int number = 4; number < 22; ++number) fields >> field;
  fields >> state.started;
  return state;
}

LockHolder this_process() { return {host_name(), ::getpid(), state_of(::getpid()).started, job_id()}; }

std::string written(const LockHolder& holder) {
  return fmt::format("host: {}\npid: {}\nstarted: {}\njob: {}\n", holder.host, holder.pid, holder.started, holder.job);
}

std::optional<LockHolder> parse(const std::string& text) {
  LockHolder holder;
  std::istringstream in(text);
  std::string key;
  if (in >> key >> holder.host && key == "host:" && in >> key >> holder.pid && key == "pid:" &&
      in >> key >> holder.started && key == "started:" && in >> key >> holder.job && key == "job:") {
    return holder;
  }
  return std::nullopt;
}

bool is_alive(const LockHolder& holder) {
  if (::kill(static_cast<pid_t>(holder.pid), 0) != 0 && errno == ESRCH) return false;
  const ProcessState state = state_of(holder.pid);
  if (state.ended) return false;
  return state.started == 0 || holder.started == 0 || state.started == holder.started;
}

/// Why the lock of `holder` must be left alone; empty if it may be taken over.
std::string refusal(const LockHolder& holder, const LockHolder& self, bool overwrite) {
  const std::string who = fmt::format("process {} on host {} (job {})", holder.pid, holder.host, holder.job);
  if (holder.host == self.host) return is_alive(holder) ? fmt::format("is being written by {}", who) : "";
  if (overwrite) return "";
  return fmt::format("is held by {}; if that process is gone, pass --overwrite-lock", who);
}

}  // namespace

FileLock::FileLock(std::filesystem::path file, bool overwrite) : file_(std::move(file)), self_(this_process()) {
  // A lock file may vanish or change between the two steps: then look again.
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (make() || take_over(overwrite)) return;
  }
  throw InvalidInput(fmt::format("{}: its lock {} changes hands all the time", file_.string(), lock_file().string()));
}

FileLock::~FileLock() {
  if (::getpid() != self_.pid) return;  // a forked child does not own it
  std::ifstream in(lock_file());
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text == written(self_)) ::unlink(lock_file().c_str());
}

bool FileLock::make() {
  const Descriptor made(::open(lock_file().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!made.valid()) {
    if (errno == EEXIST) return false;
    throw SystemError(fmt::format("{}: open failed: {}", lock_file().string(), std::strerror(errno)));
  }
  try {
    made.write_all(written(self_), lock_file().string());
  } catch (...) {
    ::unlink(lock_file().c_str());
    throw;
  }
  return true;
}

bool FileLock::take_over(bool overwrite) {
  const std::string path = lock_file().string();
  const Descriptor open(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!open.valid()) {
    if (errno == ENOENT) return false;
    throw SystemError(fmt::format("{}: open failed: {}", path, std::strerror(errno)));
  }
  // Of two processes that find the same stale lock one waits here and then sees the other alive. Where the file
  // system has no locks (NFS without lockd) only this rare race is left open.
  ::flock(open.number(), LOCK_EX);
  struct stat mine {}, current {};
  if (::fstat(open.number(), &mine) != 0 || ::stat(path.c_str(), &current) != 0 || mine.st_ino != current.st_ino) {
    return false;
  }
  const auto holder = parse(open.read_all(path));
  if (!holder && !overwrite) {
    throw InvalidInput(fmt::format("{}: its lock {} does not name its holder; if no other run has just started, pass "
                                   "--overwrite-lock", file_.string(), path));
  }
  const std::string reason = holder ? refusal(*holder, self_, overwrite) : "";
  if (!reason.empty()) throw InvalidInput(fmt::format("{}: {} (lock file {})", file_.string(), reason, path));
  if (::ftruncate(open.number(), 0) != 0) {
    throw SystemError(fmt::format("{}: ftruncate failed: {}", path, std::strerror(errno)));
  }
  open.write_all(written(self_), path);
  const bool gone = holder && holder->host == self_.host;
  const std::string former = holder ? fmt::format("process {} on host {}", holder->pid, holder->host) : "nobody known";
  log::notice(fmt::format("took over the lock {} of {}, {}", path, former,
                          gone ? "which is gone" : "as --overwrite-lock asks"));
  return true;
}

bool is_held(const std::filesystem::path& file) {
  std::ifstream in(file.string() + ".lock");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto holder = parse(text);
  return holder && (holder->host != host_name() || is_alive(*holder));
}

}  // namespace millrace::storage
