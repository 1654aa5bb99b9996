// Start and end of MPI, and texts between rank 0 and the others.
#include "comm/mpi/world.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "comm/mpi/mpi_error.h"

namespace millrace::comm {
namespace {

// Texts longer than an int's worth of bytes go in pieces.
constexpr std::int64_t kPiece = 1 << 30;

constexpr Seconds kFirstLimit = 30_s;  // of silence, until this rank has read what the experiment says

void broadcast_bytes(char* data, std::int64_t size, MPI_Comm communicator) {
  for (std::int64_t done = 0; done < size; done += kPiece) {
    const auto count = static_cast<int>(std::min(kPiece, size - done));
    check_mpi(MPI_Bcast(data + done, count, MPI_CHAR, 0, communicator), "MPI_Bcast");
  }
}

}  // namespace

World::World() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) == 0) host_ = name;
}

World::World(int* argc, char*** argv) : communicator_(MPI_COMM_WORLD) {
  int granted = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &granted), "MPI_Init_thread");
  check_mpi(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  check_mpi(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name");
  host_.assign(name, static_cast<std::size_t>(length));
  if (granted < MPI_THREAD_MULTIPLE) {
    throw SystemError(
        fmt::format("MPI grants thread level {} where MPI_THREAD_MULTIPLE ({}) is needed for progress while "
                    "kernels run; rebuild MPI with thread support",
                    granted, MPI_THREAD_MULTIPLE));
  }
  if (size_ == 1) return;
  const int behind = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  char other[MPI_MAX_PROCESSOR_NAME] = {};
  check_mpi(MPI_Sendrecv(name, sizeof name, MPI_CHAR, before, 0, other, sizeof other, MPI_CHAR, behind, 0,
                         communicator_, MPI_STATUS_IGNORE),
            "MPI_Sendrecv");
  const auto silent = [this, other = std::string(other)](int rank, Seconds s) {
    log::error(fmt::format(
        "rank {} on {} has given no sign of life for {} ({}) while the job {}: it is stopped or lost", rank, other,
        millrace::format(s), whose_limit_.load(std::memory_order_relaxed), what_.load(std::memory_order_relaxed)));
    abort(ExitCode::failed);
  };
  const auto failed = [this](const std::string& why) {
    log::error(fmt::format("signs of life between ranks: {}", why));
    abort(ExitCode::failed);
  };
  pulse_ = std::make_unique<Pulse>(communicator_, kFirstLimit, Pulse::Listeners{silent, failed});
}

std::string World::broadcast(const std::string& text) const {
  if (size_ == 1) return text;
  std::int64_t size = static_cast<std::int64_t>(text.size());
  check_mpi(MPI_Bcast(&size, 1, MPI_INT64_T, 0, communicator_), "MPI_Bcast");
  std::string result = root() ? text : std::string(static_cast<std::size_t>(size), '\0');
  broadcast_bytes(result.data(), size, communicator_);
  return result;
}

std::vector<std::string> World::gather(const std::string& text) const {
  if (size_ == 1) return {text};
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(static_cast<std::size_t>(size_)), starts(static_cast<std::size_t>(size_));
  check_mpi(MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, communicator_), "MPI_Gather");
  int total = 0;
  for (std::size_t r = 0; root() && r < lengths.size(); ++r) {
    starts[r] = total;
    total += lengths[r];
  }
  std::string all(static_cast<std::size_t>(total), '\0');
  check_mpi(
      MPI_Gatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), starts.data(), MPI_CHAR, 0, communicator_),
      "MPI_Gatherv");
  std::vector<std::string> texts;
  for (std::size_t r = 0; root() && r < lengths.size(); ++r) {
    texts.push_back(all.substr(static_cast<std::size_t>(starts[r]), static_cast<std::size_t>(lengths[r])));
  }
  return texts;
}

std::vector<std::string> World::gather_to_all(const std::string& line) const {
  std::string all;
  for (const std::string& text : gather(line)) all += text + "\n";
  all = broadcast(all);
  std::vector<std::string> lines;
  for (std::size_t at = 0, end = 0; (end = all.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(all.substr(at, end - at));
  }
  return lines;
}

std::string World::on_root_then_all(const std::function<std::string()>& make) const {
  std::string text;
  int code = 0;
  if (root()) {
    try {
      text = make();
    } catch (const Error& error) {
      code = static_cast<int>(error.code());
      text = error.what();
    }
  }
  if (size_ > 1) check_mpi(MPI_Bcast(&code, 1, MPI_INT, 0, communicator_), "MPI_Bcast");
  text = broadcast(text);
  if (code != 0) throw SharedError(static_cast<ExitCode>(code), text);
  return text;
}

void World::barrier() const {
  if (size_ > 1) check_mpi(MPI_Barrier(communicator_), "MPI_Barrier");
}

void World::stall_limit(Seconds limit) const {
  whose_limit_.store("train.stall_limit", std::memory_order_relaxed);
  if (pulse_) pulse_->limit(limit);
}

World::WatchedElsewhere::WatchedElsewhere(const World& world) : world_(world) {
  if (world_.pulse_) world_.pulse_->listen(false);
}

World::WatchedElsewhere::~WatchedElsewhere() {
  if (world_.pulse_) world_.pulse_->listen(true);
}

void World::finish() {
  if (pulse_) pulse_->finish();
  pulse_.reset();
  if (communicator_ != MPI_COMM_NULL) check_mpi(MPI_Finalize(), "MPI_Finalize");
}

void World::abort(ExitCode code) const {
  if (communicator_ != MPI_COMM_NULL) MPI_Abort(communicator_, static_cast<int>(code));
  std::_Exit(static_cast<int>(code));
}

}  // namespace millrace::comm
