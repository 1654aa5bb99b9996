// Intersections of intervals, packed into one message a pair.
#include "runtime/part_conversion.h"

#include <algorithm>
#include <cstring>

#include "kernels/add_values.h"

namespace millrace::runtime {
namespace {

using Kind = Holding::Kind;

Dims with_rows(const Dims& dims, std::int64_t rows) {
  Dims all;
  if (rows > 0) all.push_back(rows);
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

std::size_t place(const Holding& holding, std::int64_t rows) {
  return static_cast<std::size_t>(holding.dim) + (rows > 0 ? 1 : 0);
}

}  // namespace

Region held_region(const Dims& dims, std::int64_t rows, const Holding& holding, int device) {
  Region region{with_rows(dims, rows), Dims(with_rows(dims, rows).size(), 0), with_rows(dims, rows)};
  if (holding.kind != Kind::part) return region;
  const auto d = static_cast<std::size_t>(device);
  region.begin[place(holding, rows)] = holding.borders[d];
  region.size[place(holding, rows)] = holding.borders[d + 1] - holding.borders[d];
  return region;
}

PartConversion::PartConversion(Dims dims, std::int64_t rows, Holding from, Holding to, std::int64_t element_bytes,
                               PartGroup& group)
    : dims_(std::move(dims)),
      rows_(rows),
      from_(std::move(from)),
      to_(std::move(to)),
      element_bytes_(element_bytes),
      group_(group) {
  under_way_.reserve(2 * static_cast<std::size_t>(group.size()));
  const int own = group.index();
  taken_ = held_region(dims_, rows_, to_, own).elements();
  for (int peer = 0; peer < group.size(); ++peer) {
    outgoing_.push_back(part_between(own, peer, from_, own));
    incoming_.push_back(part_between(peer, own, to_, own));
    const auto bytes = [&](const Region& region) {
      return static_cast<std::size_t>(region.elements() * element_bytes);
    };
    sent_.emplace_back(moves() || peer == own ? bytes(outgoing_.back()) : 0);
    received_.emplace_back(moves() && peer != own ? bytes(incoming_.back()) : 0);
  }
}

bool PartConversion::moves() const {
  if (from_ == to_ || from_.kind == Kind::whole || to_.kind == Kind::term) return false;
  return from_.kind == Kind::part || to_.kind == Kind::part;
}

// What the sender holds and the receiver takes, in the coordinates of what `holder` holds.
Region PartConversion::part_between(int sender, int receiver, const Holding& holding, int holder) const {
  const Region held = held_region(dims_, rows_, from_, sender);
  const Region taken = held_region(dims_, rows_, to_, receiver);
  const Region array = held_region(dims_, rows_, holding, holder);
  Region region{array.size, array.begin, array.size};
  for (std::size_t i = 0; i < region.size.size(); ++i) {
    const std::int64_t begin = std::max(held.begin[i], taken.begin[i]);
    const std::int64_t end = std::min(held.begin[i] + held.size[i], taken.begin[i] + taken.size[i]);
    region.begin[i] = begin - array.begin[i];
    region.size[i] = std::max<std::int64_t>(0, end - begin);
  }
  return region;
}

bool PartConversion::sums() const { return from_.kind == Kind::term && to_.kind == Kind::whole; }

void PartConversion::run(const void* from, void* to) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  const auto own = static_cast<std::size_t>(group_.index());
  const auto bytes = static_cast<std::size_t>(taken_ * element_bytes_);
  if (from_ == to_) {
    std::memcpy(target, source, bytes);
  } else if (sums()) {
    std::memcpy(target, source, bytes);
    group_.sum(target, taken_, precision(), under_way_);
    group_.wait(under_way_);
  } else if (to_.kind == Kind::term) {  // the first keeps the whole, or each its part
    std::memset(target, 0, bytes);
    if (from_.kind == Kind::whole && own != 0) return;
    pack(outgoing_[own], source, element_bytes_, sent_[own].data());
    unpack(incoming_[own], sent_[own].data(), element_bytes_, target);
  } else {
    exchange(source);
    take_in(target);
  }
}

void PartConversion::begin(void* from) {
  if (sums()) {
    group_.sum(from, taken_, precision(), under_way_);
  } else {
    exchange(static_cast<const std::byte*>(from));
  }
}

void PartConversion::end(const void* from, void* to) {
  if (!sums()) return take_in(static_cast<std::byte*>(to));
  group_.wait(under_way_);
  std::memcpy(to, from, static_cast<std::size_t>(taken_ * element_bytes_));
}

kernels::Precision PartConversion::precision() const {
  return element_bytes_ == 8 ? kernels::Precision::fp64 : kernels::Precision::fp32;
}

void PartConversion::exchange(const std::byte* from) {
  for (std::size_t peer = 0; peer < sent_.size(); ++peer) {
    if (!sent_[peer].empty()) pack(outgoing_[peer], from, element_bytes_, sent_[peer].data());
  }
  if (moves()) group_.exchange(sent_, received_, under_way_);
}

void PartConversion::take_in(std::byte* to) {
  group_.wait(under_way_);
  if (from_.kind == Kind::term) return add_terms(to);
  const auto own = static_cast<std::size_t>(group_.index());
  for (std::size_t peer = 0; peer < sent_.size(); ++peer) {
    const std::vector<std::byte>& buffer = peer == own ? sent_[own] : received_[peer];
    if (!buffer.empty()) unpack(incoming_[peer], buffer.data(), element_bytes_, to);
  }
}

void PartConversion::add_terms(std::byte* to) {
  const auto own = static_cast<std::size_t>(group_.index());
  for (std::size_t peer = 0; peer < sent_.size(); ++peer) {
    const std::vector<std::byte>& term = peer == own ? sent_[own] : received_[peer];
    if (peer == 0) {
      std::memcpy(to, term.data(), term.size());
    } else {
      kernels::add_values(to, term.data(), incoming_[own].elements(), precision());
    }
  }
}

}  // namespace millrace::runtime
