// Anonymous files of memory, opened by the other ranks through /proc.
#include "comm/node/node_memory.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "comm/mpi/mpi_error.h"

namespace millrace::comm {
namespace {

std::int64_t rounded_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// What others need to open a segment, and to see that it is the right one.
struct Opening {
  std::int64_t process = 0;
  std::int64_t file = -1;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t capacity = 0;
};

// Addresses, not memory: as much as the machine has twice over, shared out, so that freed places need no second use.
// Under a limit of addresses or of file sizes there may be too few in the middle of a run: none then.
std::int64_t capacity_of(int ranks_on_node) {
  for (const auto limit : {RLIMIT_FSIZE, RLIMIT_AS}) {
    rlimit allowed{};
    if (getrlimit(limit, &allowed) != 0 || allowed.rlim_cur != RLIM_INFINITY) return 0;
  }
  return 2 * std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) / ranks_on_node / kPage * kPage;
}

std::byte* mapped(int file, std::int64_t capacity) {
  void* const place =
      mmap(nullptr, static_cast<std::size_t>(capacity), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  return place == MAP_FAILED ? nullptr : static_cast<std::byte*>(place);
}

MPI_Comm ranks_of_this_node(MPI_Comm communicator, int rank, int ranks_per_node) {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  if (ranks_per_node == 0) return node;
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(node, rank / ranks_per_node, rank, &part), "MPI_Comm_split");
  MPI_Comm_free(&node);
  return part;
}

}  // namespace

std::shared_ptr<NodeMemory> NodeMemory::make(MPI_Comm communicator, int ranks_per_node, std::int64_t room) {
  std::shared_ptr<NodeMemory> memory(new NodeMemory());
  int rank = 0, size = 0;
  check_mpi(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  MPI_Comm node = ranks_of_this_node(communicator, rank, ranks_per_node);
  check_mpi(MPI_Comm_rank(node, &memory->index_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(node, &size), "MPI_Comm_size");
  memory->ranks_.resize(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(&rank, 1, MPI_INT, memory->ranks_.data(), 1, MPI_INT, node), "MPI_Allgather");
  bool shared = size > 1;
  if (shared) {
    const std::int64_t all_room = capacity_of(size);
    memory->open_own(room == 0 ? all_room : std::min(room, all_room));
    const int own = memory->open_others(node) ? 1 : 0;
    int all = 0;
    check_mpi(MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, node), "MPI_Allreduce");
    shared = all == 1;
    if (!shared && memory->index_ == 0) {
      log::notice("ranks of a node cannot share memory here: their messages and sums go by MPI");
    }
  }
  MPI_Comm_free(&node);
  return shared ? memory : nullptr;
}

bool NodeMemory::open_own(std::int64_t capacity) {
  capacity_ = capacity;
  used_ = rounded_up(sizeof(Desk), kPage);
  file_ = memfd_create("millrace", MFD_CLOEXEC);
  return file_ >= 0 && capacity_ > used_ && ftruncate(file_, capacity_) == 0 && posix_fallocate(file_, 0, used_) == 0;
}

bool NodeMemory::open_others(MPI_Comm node) {
  Opening own;
  struct stat facts {};
  if (file_ >= 0 && fstat(file_, &facts) == 0 && facts.st_size == capacity_ && facts.st_blocks > 0) {
    own = {getpid(), file_, facts.st_dev, facts.st_ino, capacity_};
  }
  std::vector<Opening> all(ranks_.size());
  check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, node), "MPI_Allgather");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Opening& opening = all[i];
    if (opening.file < 0) return false;
    const bool is_own = static_cast<int>(i) == index_;
    const std::string path = fmt::format("/proc/{}/fd/{}", opening.process, opening.file);
    const int file = is_own ? file_ : open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    const bool right = fstat(file, &facts) == 0 && facts.st_dev == opening.device && facts.st_ino == opening.inode;
    std::byte* const place = right ? mapped(file, opening.capacity) : nullptr;
    if (!is_own) close(file);
    if (place == nullptr) return false;
    segments_.push_back(place);
    capacities_.push_back(opening.capacity);
  }
  return true;
}

NodeMemory::~NodeMemory() {
  for (std::size_t i = 0; i < segments_.size(); ++i) munmap(segments_[i], static_cast<std::size_t>(capacities_[i]));
  if (file_ >= 0) close(file_);
}

int NodeMemory::index_of(int rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
}

std::optional<std::uint64_t> NodeMemory::offset_of(const void* data) const {
  const auto first = reinterpret_cast<std::uintptr_t>(segments_[static_cast<std::size_t>(index_)]);
  const auto place = reinterpret_cast<std::uintptr_t>(data);
  if (place < first || place >= first + static_cast<std::uintptr_t>(capacity_)) return std::nullopt;
  return place - first;
}

// The file has its memory before anything is written: where there is none it is refused here, not by a signal. What is
// larger than a page shares none.
std::byte* NodeMemory::take(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::int64_t unit = bytes < kPage ? kLine : kPage;
  const std::int64_t offset = rounded_up(used_, unit);
  const std::int64_t size = std::max(rounded_up(bytes, unit), unit);
  if (size > capacity_ - offset || posix_fallocate(file_, offset, size) != 0) return nullptr;
  used_ = offset + size;
  return at(index_, static_cast<std::uint64_t>(offset));
}

std::shared_ptr<std::byte[]> NodeMemory::allocate(const std::shared_ptr<NodeMemory>& memory, std::int64_t bytes) {
  std::byte* const block = memory->take(bytes);
  if (block == nullptr) return nullptr;
  return {block, [memory, bytes](const std::byte* freed) { memory->give_back(freed, bytes); }};
}

void NodeMemory::give_back(const std::byte* block, std::int64_t bytes) const {
  if (bytes < kPage) return;  // it shares its page
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(*offset_of(block)),
            rounded_up(bytes, kPage));
}

}  // namespace millrace::comm
