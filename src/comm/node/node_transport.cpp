// Which way an operation goes, who does its work, and how its end is told.
#include "comm/node/node_transport.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/errors.h"

namespace millrace::comm {
namespace {

// A message that others do not see where it lies is copied for them up to this size; a longer one goes by MPI.
constexpr std::int64_t kLargestStaged = std::int64_t{1} << 20;
constexpr std::size_t kOperations = 256;        // that are made at the begin: how many are in flight is up to chance
constexpr std::size_t kFreeBlocks = 64;         // of one size that are noted before anything is allocated for it
constexpr int kBlockOfGroup = -1;               // a tag that no caller has
constexpr std::chrono::milliseconds kNap{100};  // every wait looks again, whatever happened to its bell

}  // namespace

NodeTransport::NodeTransport(MPI_Comm communicator, NodeTransportOptions options)
    : mpi_(communicator, options.mpi),
      memory_(options.shares_memory ? NodeMemory::make(communicator, options.ranks_per_node, options.room) : nullptr) {
  operations_.resize(kOperations);
  for (std::vector<Ticket>* list : {&free_, &expected_, &offered_, &sums_}) list->reserve(kOperations);
  for (std::size_t ticket = kOperations; ticket-- > 0;) free_.push_back(static_cast<Ticket>(ticket));
  if (memory_ == nullptr) return;
  parcels_ = std::make_unique<Parcels>(memory_);
  helper_ = std::thread([this] { help(); });
}

NodeTransport::~NodeTransport() {
  if (memory_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  memory_->desk(memory_->index()).helper.ring();
  helper_.join();
}

Ticket NodeTransport::open(Kind kind) {
  if (free_.empty()) {
    free_.push_back(static_cast<Ticket>(operations_.size()));
    operations_.emplace_back();
    for (std::vector<Ticket>* list : {&free_, &expected_, &offered_, &sums_}) list->reserve(operations_.size());
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  operation(ticket) = {};
  operation(ticket).kind = kind;
  return ticket;
}

void NodeTransport::close(Ticket ticket) {
  operation(ticket).kind = Kind::unused;
  free_.push_back(ticket);
}

std::shared_ptr<std::byte[]> NodeTransport::allocate(std::int64_t bytes) {
  if (memory_ != nullptr) {
    if (auto block = NodeMemory::allocate(memory_, bytes)) return block;
  }
  return Transport::allocate(bytes);
}

// Blocks have sizes of powers of two and are kept for the next one.
std::byte* NodeTransport::stage(std::int64_t bytes) {
  const auto size =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 64))));
  std::vector<std::byte*>& blocks = staging_[size];
  if (blocks.empty()) {
    blocks.reserve(kFreeBlocks);
    std::byte* const block = memory_->take(size);
    if (block == nullptr) throw SystemError("no more memory that ranks of a node could share for a sum or a message");
    return block;
  }
  std::byte* const block = blocks.back();
  blocks.pop_back();
  return block;
}

void NodeTransport::unstage(std::byte* block, std::int64_t bytes) {
  staging_[static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 64))))]
      .push_back(block);
}

// The thread that issues, where it waits: it is woken for it and nobody has to give way. Else the helper.
void NodeTransport::call(int index) {
  Desk& desk = memory_->desk(index);
  (desk.waits.load(std::memory_order_seq_cst) != 0 ? desk.issuer : desk.helper).ring();
}

Ticket NodeTransport::send(std::span<const std::byte> data, int peer, int tag) {
  const std::lock_guard lock(mutex_);
  const int index = memory_ == nullptr ? -1 : memory_->index_of(peer);
  if (index < 0) {
    const Ticket ticket = open(Kind::mpi);
    operation(ticket).by_mpi = mpi_.send(data, peer, tag);
    return ticket;
  }
  const Ticket ticket = open(Kind::send);
  Operation& at = operation(ticket);
  at.peer = index;
  at.bytes = static_cast<std::int64_t>(data.size());
  std::optional<std::uint64_t> offset = memory_->offset_of(data.data());
  if (!offset && at.bytes <= kLargestStaged) {
    at.staged = stage(at.bytes);
    if (!data.empty()) std::memcpy(at.staged, data.data(), data.size());
    offset = memory_->offset_of(at.staged);
  }
  if (!offset) at.by_mpi = mpi_.send(data, peer, tag);
  at.parcel = parcels_->post(index, tag, offset.value_or(0), at.bytes, !offset);
  if (offset) {
    bytes_sent_ += at.bytes;
    memory_->desk(index).issuer.ring();
  } else {
    call(index);
  }
  return ticket;
}

Ticket NodeTransport::receive(std::span<std::byte> data, int peer, int tag) {
  const std::lock_guard lock(mutex_);
  const int index = memory_ == nullptr ? -1 : memory_->index_of(peer);
  if (index < 0) {
    const Ticket ticket = open(Kind::mpi);
    operation(ticket).by_mpi = mpi_.receive(data, peer, tag);
    return ticket;
  }
  const Ticket ticket = open(Kind::receive);
  Operation& at = operation(ticket);
  at.data = data.data();
  at.bytes = static_cast<std::int64_t>(data.size());
  at.peer = index;
  at.tag = tag;
  expected_.push_back(ticket);
  serve_messages();
  return ticket;
}

// Gives each receive the oldest parcel of its sender and tag, and fills those that a sender waits for.
bool NodeTransport::serve_messages() {
  bool served = parcels_->collect();
  for (std::size_t i = 0; i < expected_.size();) {
    Operation& at = operation(expected_[i]);
    Parcel* const parcel = parcels_->find(at.peer, at.tag);
    if (parcel == nullptr) {
      ++i;
      continue;
    }
    const Ticket ticket = expected_[i];
    expected_.erase(expected_.begin() + static_cast<std::ptrdiff_t>(i));
    match(at, parcel);
    if (at.by_mpi == kNoTicket) offered_.push_back(ticket);
    served = true;
  }
  std::erase_if(offered_, [&](Ticket ticket) {
    Operation& at = operation(ticket);
    if (at.in_place || at.parcel->is_urgent.load(std::memory_order_seq_cst) == 0) return false;
    fill(at);
    served = true;
    return true;
  });
  return served;
}

void NodeTransport::match(Operation& receive, Parcel* parcel) {
  if (!parcel->by_mpi) {
    receive.parcel = parcel;
    return;
  }
  receive.by_mpi = mpi_.receive({receive.data, static_cast<std::size_t>(receive.bytes)},
                                memory_->ranks()[static_cast<std::size_t>(receive.peer)], receive.tag);
  parcels_->take(*parcel);
}

void NodeTransport::fill(Operation& receive) {
  const std::int64_t bytes = std::min(receive.bytes, receive.parcel->bytes);
  if (bytes > 0) std::memcpy(receive.data, parcels_->data(*receive.parcel), static_cast<std::size_t>(bytes));
  parcels_->take(*receive.parcel);
  receive.parcel = nullptr;
  receive.complete = true;
  bytes_received_ += bytes;
}

// The lowest member's segment has the block; it tells the others where.
std::unique_ptr<SharedSum> NodeTransport::make_sum(std::span<const int> ranks) {
  if (memory_ == nullptr) return nullptr;
  std::vector<int> members;
  for (const int rank : ranks) members.push_back(memory_->index_of(rank));
  if (std::find(members.begin(), members.end(), -1) != members.end()) return nullptr;
  std::uint64_t offset = 0;
  const std::span<std::byte> told = std::as_writable_bytes(std::span(&offset, 1));
  if (ranks.front() == rank()) {
    offset = *memory_->offset_of(stage(SharedSum::block_bytes(members.size())));
    for (const int other : ranks.subspan(1)) wait(send(told, other, kBlockOfGroup));
  } else {
    wait(receive(told, ranks.front(), kBlockOfGroup));
  }
  return std::make_unique<SharedSum>(memory_, members, memory_->at(members.front(), offset));
}

GroupId NodeTransport::group(std::span<const int> ranks) {
  const std::vector<int> key(ranks.begin(), ranks.end());
  if (const auto known = group_of_.find(key); known != group_of_.end()) return known->second;
  Group made;
  made.mpi = mpi_.group(ranks);
  made.sum = make_sum(ranks);
  const std::lock_guard lock(mutex_);
  groups_.push_back(std::move(made));
  const auto id = static_cast<GroupId>(groups_.size() - 1);
  group_of_.emplace(key, id);
  return id;
}

Ticket NodeTransport::all_reduce(GroupId group, void* data, std::int64_t count, Element element) {
  const std::lock_guard lock(mutex_);
  Group& members = groups_[static_cast<std::size_t>(group)];
  if (members.sum == nullptr) {
    const Ticket ticket = open(Kind::mpi);
    operation(ticket).by_mpi = mpi_.all_reduce(members.mpi, data, count, element);
    return ticket;
  }
  const Ticket ticket = open(Kind::sum);
  Operation& at = operation(ticket);
  at.data = static_cast<std::byte*>(data);
  at.bytes = count * element_bytes(element);
  at.group = static_cast<std::size_t>(group);
  at.sum = {members.started++, at.bytes, element};
  if (!memory_->offset_of(data)) {
    at.staged = stage(at.bytes);
    if (at.bytes > 0) std::memcpy(at.staged, data, static_cast<std::size_t>(at.bytes));
  }
  bytes_sent_ += at.bytes;
  bytes_received_ += at.bytes;
  sums_.push_back(ticket);
  settle_sums();
  return ticket;
}

// Every member of a node sees the sum where it is added up: to have all of it costs no more than a part.
Ticket NodeTransport::reduce_scatter(GroupId group, void* data, std::int64_t count, Element element) {
  if (groups_[static_cast<std::size_t>(group)].sum != nullptr) return all_reduce(group, data, count, element);
  const std::lock_guard lock(mutex_);
  const Ticket ticket = open(Kind::mpi);
  operation(ticket).by_mpi = mpi_.reduce_scatter(groups_[static_cast<std::size_t>(group)].mpi, data, count, element);
  return ticket;
}

Ticket NodeTransport::all_gather(GroupId group, void* data, std::int64_t count, Element element) {
  const std::lock_guard lock(mutex_);
  const Ticket ticket = open(Kind::mpi);
  operation(ticket).by_mpi = mpi_.all_gather(groups_[static_cast<std::size_t>(group)].mpi, data, count, element);
  return ticket;
}

// Sums of a group arrive in order: one that finds no place stops the later ones. A place is free once all members have
// left it, which none puts off until somebody asks for the sum.
void NodeTransport::settle_sums() {
  std::erase_if(sums_, [&](Ticket ticket) {
    Operation& at = operation(ticket);
    const SharedSum& sum = *groups_[at.group].sum;
    if (!at.arrived || !sum.is_done(at.sum)) return false;
    sum.leave(at.sum);
    at.complete = true;
    return true;
  });
  for (const Ticket ticket : sums_) {
    if (!operation(ticket).arrived) arrive(operation(ticket));
  }
}

void NodeTransport::arrive(Operation& at) {
  const SharedSum& sum = *groups_[at.group].sum;
  for (const Ticket ticket : sums_) {
    const Operation& before = operation(ticket);
    if (&before == &at) break;
    if (before.group == at.group && !before.arrived) return;
  }
  at.arrived = sum.arrive(at.sum, *memory_->offset_of(at.staged != nullptr ? at.staged : at.data));
  if (!at.arrived || !sum.is_ready(at.sum)) return;
  // This rank was the last. Threads that wait do the work; helpers would take the cores of those that compute.
  bool waits = false;
  for (const int member : sum.members()) {
    Desk& desk = memory_->desk(member);
    if (desk.waits.load(std::memory_order_seq_cst) == 0) continue;
    waits = true;
    desk.issuer.ring();
  }
  for (const int member : sum.members()) {
    if (!waits) memory_->desk(member).helper.ring();
  }
}

bool NodeTransport::advance(Operation& at) {
  switch (at.kind) {
    case Kind::mpi:
      return mpi_.test(at.by_mpi);
    case Kind::send:
      if (at.by_mpi != kNoTicket && mpi_.test(at.by_mpi)) at.by_mpi = kNoTicket;
      return at.by_mpi == kNoTicket && at.parcel->is_taken.load(std::memory_order_acquire) != 0;
    case Kind::receive:
      serve_messages();
      if (at.by_mpi != kNoTicket) return mpi_.test(at.by_mpi);
      if (at.parcel != nullptr && !at.in_place) {
        std::erase_if(offered_, [&](Ticket ticket) { return &operation(ticket) == &at; });
        fill(at);
      }
      return at.complete;
    case Kind::sum:
      settle_sums();
      return at.complete;
    default:
      return true;
  }
}

bool NodeTransport::test(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  Operation& at = operation(ticket);
  if (!advance(at)) return false;
  if (at.kind == Kind::send) parcels_->recycle(at.parcel);
  if (at.kind == Kind::sum && at.staged != nullptr && at.bytes > 0) {
    std::memcpy(at.data, at.staged, static_cast<std::size_t>(at.bytes));
  }
  if (at.staged != nullptr) unstage(at.staged, at.bytes);
  close(ticket);
  return true;
}

// Sleeps between looks, but for work that waiting ranks want done.
template <class Done>
void NodeTransport::sleep_until(Done done, WaitObserver* observer) {
  if (!done()) {
    Desk& desk = memory_->desk(memory_->index());
    if (observer != nullptr) observer->waiting();
    desk.waits.store(1, std::memory_order_seq_cst);
    while (true) {
      const std::uint32_t seen = desk.issuer.rings();
      if (done()) break;
      if (!serve()) desk.issuer.sleep(seen, kNap);
    }
    desk.waits.store(0, std::memory_order_seq_cst);
    serve();  // whoever saw it wait counts on it
  }
  if (observer != nullptr) observer->finished();
}

void NodeTransport::wait_for_parcel(Ticket ticket, WaitObserver* observer) {
  const auto has_come = [&] {
    const std::lock_guard lock(mutex_);
    const Operation& at = operation(ticket);
    serve_messages();
    return at.parcel != nullptr || at.complete || at.by_mpi != kNoTicket;
  };
  sleep_until(has_come, observer);
}

void NodeTransport::wait(Ticket ticket, WaitObserver* observer) {
  const Kind kind = operation(ticket).kind;  // nobody else changes it
  if (kind == Kind::receive) wait_for_parcel(ticket, observer);
  Operation& at = operation(ticket);
  if (at.by_mpi != kNoTicket) {
    mpi_.wait(at.by_mpi, observer);
    const std::lock_guard lock(mutex_);
    at.by_mpi = kNoTicket;
    if (kind != Kind::send) return close(ticket);
  }
  if (kind == Kind::send && at.parcel->is_taken.load(std::memory_order_acquire) == 0) {
    at.parcel->is_urgent.store(1, std::memory_order_seq_cst);
    call(at.peer);
  }
  sleep_until([&] { return test(ticket); }, observer);
}

const std::byte* NodeTransport::wait_in_place(Ticket ticket, const std::byte* buffer, WaitObserver* observer) {
  if (operation(ticket).kind == Kind::receive) {
    wait_for_parcel(ticket, observer);
    const std::lock_guard lock(mutex_);
    Operation& at = operation(ticket);
    if (at.parcel != nullptr) {
      at.in_place = true;
      return parcels_->data(*at.parcel);
    }
  }
  wait(ticket, observer);
  return buffer;
}

void NodeTransport::taken(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  Operation& at = operation(ticket);
  if (at.kind != Kind::receive || !at.in_place) return;
  std::erase(offered_, ticket);
  bytes_received_ += at.bytes;
  parcels_->take(*at.parcel);
  close(ticket);
}

bool NodeTransport::serve() {
  bool served = false;
  SharedSum* sum = nullptr;
  SumPart part;
  {
    const std::lock_guard lock(mutex_);
    served = serve_messages();
    settle_sums();
    for (const Ticket ticket : sums_) {
      const Operation& at = operation(ticket);
      if (sum != nullptr || !at.arrived || !groups_[at.group].sum->has_work(at.sum)) continue;
      sum = groups_[at.group].sum.get();
      part = at.sum;
    }
  }
  return (sum != nullptr && sum->work(part)) || served;
}

void NodeTransport::help() {
  Bell& bell = memory_->desk(memory_->index()).helper;
  while (true) {
    const std::uint32_t seen = bell.rings();
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
    }
    try {
      if (serve()) continue;
    } catch (const Error&) {
      return;  // the issuing thread meets the same failure and reports it
    }
    bell.sleep(seen, kNap);
  }
}

}  // namespace millrace::comm
