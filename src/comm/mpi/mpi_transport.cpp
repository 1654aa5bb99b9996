// MPI operations as tickets, and the helper thread that tests them.
#include "comm/mpi/mpi_transport.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include <sched.h>

#include "base/errors.h"
#include "base/even_parts.h"
#include "base/log.h"
#include "comm/mpi/mpi_error.h"

namespace millrace::comm {
namespace {

// A helper that tests every 100 us hides a 16 MiB reduction behind 50 ms of compute: a reduction has many steps, each
// of which waits for a test, and so has a large send through shared memory, which goes in pieces. Receives wait for
// peers that compute: the longer nothing ends, the longer the naps, each of which costs two switches on a busy core.
constexpr std::chrono::microseconds kShortestNap{100};
constexpr std::chrono::microseconds kLongestNap{800};
constexpr std::size_t kTickets = 256;  // that are made at the begin
constexpr int kSpins = 200;            // polls before the waiting thread begins to nap
constexpr std::chrono::microseconds kWaitNap{20};

MPI_Datatype mpi_type(Element element) { return element == Element::float64 ? MPI_DOUBLE : MPI_FLOAT; }

std::int64_t pieces_of(std::int64_t total, std::int64_t limit) {
  return std::max<std::int64_t>(1, (total + limit - 1) / limit);
}

// Calls `piece(offset, count)` for `total` things in runs of at most `limit`; an empty message is one empty run.
template <class Piece>
void in_pieces(std::int64_t total, std::int64_t limit, Piece piece) {
  std::int64_t done = 0;
  do {
    const std::int64_t count = std::min(limit, total - done);
    piece(done, static_cast<int>(count));
    done += count;
  } while (done < total);
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm communicator, MpiTransportOptions options) : options_(options) {
  check_mpi(MPI_Comm_dup(communicator, &messages_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(messages_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(messages_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(messages_, &size_), "MPI_Comm_size");
  int* tag_limit = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(messages_, MPI_TAG_UB, static_cast<void*>(&tag_limit), &found), "MPI_Comm_get_attr");
  largest_tag_ = found != 0 ? *tag_limit : 32767;  // 32767 is what the MPI standard guarantees
  requests_.resize(kTickets);
  for (auto* list : {&free_, &active_, &pushing_}) list->reserve(kTickets);
  for (std::size_t ticket = kTickets; ticket-- > 0;) {
    requests_[ticket].reserve(most_pieces_);
    free_.push_back(static_cast<Ticket>(ticket));
  }
  helper_ = std::thread([this] { progress(); });
}

MpiTransport::~MpiTransport() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_one();
  helper_.join();
  // Freeing a communicator is collective: after an error on one rank only it would hang, so it is left to MPI's end.
}

Ticket MpiTransport::open_ticket(std::int64_t pieces) {
  if (free_.empty()) {
    free_.push_back(static_cast<Ticket>(requests_.size()));
    requests_.emplace_back().reserve(most_pieces_);
    for (auto* list : {&free_, &active_, &pushing_}) list->reserve(requests_.size());
  }
  if (static_cast<std::size_t>(pieces) > most_pieces_) {
    most_pieces_ = static_cast<std::size_t>(pieces);
    for (auto& requests : requests_) requests.reserve(most_pieces_);
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  requests_[static_cast<std::size_t>(ticket)].clear();
  active_.push_back(ticket);
  nap_ = kShortestNap;
  return ticket;
}

std::int64_t MpiTransport::elements_of_segment(std::int64_t element_size) const {
  return std::max<std::int64_t>(
      1, std::min(options_.reduction_segment_bytes, options_.largest_message_bytes) / element_size);
}

Ticket MpiTransport::send(std::span<const std::byte> data, int peer, int tag) {
  const std::unique_lock lock(mutex_);
  const Ticket ticket = open_ticket(pieces_of(static_cast<std::int64_t>(data.size()), options_.largest_message_bytes));
  auto& requests = requests_[static_cast<std::size_t>(ticket)];
  in_pieces(static_cast<std::int64_t>(data.size()), options_.largest_message_bytes, [&](std::int64_t at, int count) {
    requests.push_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Isend(data.data() + at, count, MPI_BYTE, peer, tag, messages_, &requests.back()), "MPI_Isend");
  });
  bytes_sent_ += static_cast<std::int64_t>(data.size());
  push(ticket);
  return ticket;
}

Ticket MpiTransport::receive(std::span<std::byte> data, int peer, int tag) {
  const std::unique_lock lock(mutex_);
  const Ticket ticket = open_ticket(pieces_of(static_cast<std::int64_t>(data.size()), options_.largest_message_bytes));
  auto& requests = requests_[static_cast<std::size_t>(ticket)];
  in_pieces(static_cast<std::int64_t>(data.size()), options_.largest_message_bytes, [&](std::int64_t at, int count) {
    requests.push_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Irecv(data.data() + at, count, MPI_BYTE, peer, tag, messages_, &requests.back()), "MPI_Irecv");
  });
  bytes_received_ += static_cast<std::int64_t>(data.size());
  if (active_.size() == 1) work_.notify_one();
  return ticket;
}

GroupId MpiTransport::group(std::span<const int> ranks) {
  const std::vector<int> key(ranks.begin(), ranks.end());
  if (const auto known = group_of_.find(key); known != group_of_.end()) return known->second;
  const std::unique_lock lock(mutex_);
  MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(messages_, &all), "MPI_Comm_group");
  check_mpi(MPI_Group_incl(all, static_cast<int>(key.size()), key.data(), &members), "MPI_Group_incl");
  check_mpi(MPI_Comm_create_group(messages_, members, 0, &made), "MPI_Comm_create_group");
  check_mpi(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  MPI_Group_free(&members);
  MPI_Group_free(&all);
  groups_.push_back(made);
  const auto id = static_cast<GroupId>(groups_.size() - 1);
  group_of_.emplace(key, id);
  return id;
}

Ticket MpiTransport::all_reduce(GroupId group, void* data, std::int64_t count, Element element) {
  const std::unique_lock lock(mutex_);
  const std::int64_t bytes = element_bytes(element);
  const std::int64_t segment = elements_of_segment(bytes);
  const Ticket ticket = open_ticket(pieces_of(count, segment));
  auto& requests = requests_[static_cast<std::size_t>(ticket)];
  in_pieces(count, segment, [&](std::int64_t at, int piece) {
    requests.push_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, static_cast<std::byte*>(data) + at * bytes, piece, mpi_type(element),
                             MPI_SUM, groups_[static_cast<std::size_t>(group)], &requests.back()),
              "MPI_Iallreduce");
  });
  bytes_sent_ += count * bytes;
  bytes_received_ += count * bytes;
  push(ticket);
  return ticket;
}

// Every part has its own operations, in the order of the members: Open MPI's reduce_scatter and all_gather cannot be
// cut into segments that overlap.
Ticket MpiTransport::by_parts(GroupId group, void* data, std::int64_t count, Element element, const Segment& start) {
  const std::unique_lock lock(mutex_);
  MPI_Comm members = groups_[static_cast<std::size_t>(group)];
  int size = 0, self = 0;
  check_mpi(MPI_Comm_size(members, &size), "MPI_Comm_size");
  check_mpi(MPI_Comm_rank(members, &self), "MPI_Comm_rank");
  const std::int64_t bytes = element_bytes(element);
  const std::int64_t segment = elements_of_segment(bytes);
  const Ticket ticket = open_ticket(size * pieces_of(even_part(count, size, 0).size(), segment));
  auto& requests = requests_[static_cast<std::size_t>(ticket)];
  for (int member = 0; member < size; ++member) {
    const ElementRange part = even_part(count, size, member);
    if (part.size() == 0) continue;
    in_pieces(part.size(), segment, [&](std::int64_t at, int piece) {
      requests.push_back(MPI_REQUEST_NULL);
      start(static_cast<std::byte*>(data) + (part.begin + at) * bytes, piece, member, member == self, &requests.back());
    });
    bytes_sent_ += member == self ? 0 : part.size() * bytes;
    bytes_received_ += member == self ? part.size() * bytes : 0;
  }
  push(ticket);
  return ticket;
}

Ticket MpiTransport::reduce_scatter(GroupId group, void* data, std::int64_t count, Element element) {
  MPI_Comm members = groups_[static_cast<std::size_t>(group)];
  return by_parts(group, data, count, element, [&](void* at, int piece, int member, bool own, MPI_Request* request) {
    check_mpi(MPI_Ireduce(own ? MPI_IN_PLACE : at, own ? at : nullptr, piece, mpi_type(element), MPI_SUM, member,
                          members, request),
              "MPI_Ireduce");
  });
}

Ticket MpiTransport::all_gather(GroupId group, void* data, std::int64_t count, Element element) {
  MPI_Comm members = groups_[static_cast<std::size_t>(group)];
  return by_parts(group, data, count, element, [&](void* at, int piece, int member, bool, MPI_Request* request) {
    check_mpi(MPI_Ibcast(at, piece, mpi_type(element), member, members, request), "MPI_Ibcast");
  });
}

void MpiTransport::push(Ticket ticket) {
  pushing_.push_back(ticket);
  push_started_ = true;
  work_.notify_one();
}

bool MpiTransport::advance(Ticket ticket) {
  auto& requests = requests_[static_cast<std::size_t>(ticket)];
  int done = 0;
  check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  return done != 0;
}

void MpiTransport::forget(Ticket ticket) {
  std::erase(active_, ticket);
  std::erase(pushing_, ticket);
}

bool MpiTransport::test(Ticket ticket) {
  const std::unique_lock lock(mutex_);
  if (!advance(ticket)) return false;
  forget(ticket);  // gone already when the helper saw its end
  free_.push_back(ticket);
  return true;
}

void MpiTransport::wait(Ticket ticket, WaitObserver* observer) {
  for (int polls = 0; !test(ticket); ++polls) {
    if (polls == 0 && observer != nullptr) observer->waiting();
    // Ranks may share cores: yield early, nap when the peer is clearly busy.
    if (polls < kSpins) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kWaitNap);
    }
  }
  if (observer != nullptr) observer->finished();
}

void MpiTransport::progress() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (active_.empty()) {
      work_.wait(lock, [this] { return stop_ || !active_.empty(); });
      continue;
    }
    try {
      // One test of an unfinished operation enters MPI's progress engine, which serves all in flight; a test of a
      // finished one does not, so it leaves the list though its ticket is not yet spent.
      const Ticket ticket = pushing_.empty() ? active_.front() : pushing_.front();
      if (advance(ticket)) {
        forget(ticket);
        nap_ = kShortestNap;
        continue;
      }
    } catch (const Error&) {
      return;  // the issuing thread meets the same failure at its wait and reports it
    }
    push_started_ = false;
    const std::chrono::microseconds nap = pushing_.empty() ? nap_ : kShortestNap;
    nap_ = std::min(2 * nap, kLongestNap);
    work_.wait_for(lock, nap, [this] { return stop_ || push_started_; });
  }
}

}  // namespace millrace::comm
