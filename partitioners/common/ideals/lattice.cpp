// Finds ideals level by level: each is one operator larger than one of the level before.
#include "partitioners/common/ideals/lattice.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace millrace::partitioners::ideals {
namespace {

std::uint64_t mixed(std::span<const std::uint64_t> words) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0xbf58476d1ce4e5b9ULL;
    hash ^= hash >> 31;
  }
  return hash;
}

}  // namespace

// Grows a lattice by levels of equal size.
class Lattice::Growth {
 public:
  Growth(Lattice& lattice, const OpEdges& successors, std::size_t most, std::chrono::steady_clock::time_point deadline)
      : lattice_(lattice),
        behind_(successors),
        needed_(predecessors(successors)),
        most_(std::min(most, std::max<std::size_t>(2, kMostBytes / (8 * lattice.words_)))),
        bits_(lattice.words_),
        deadline_(deadline) {}

  bool run(OpId operators) {
    if (too_wide(operators)) return false;
    lattice_.bits_.assign(lattice_.words_, 0);
    lattice_.count_ = {0};
    lattice_.start_ = {0};
    next_ready_.resize(1);
    for (OpId op = 0; op < operators; ++op) {
      if (needed_.of(op).empty()) next_ready_[0].push_back(op);
    }
    std::int32_t first = 0;
    for (OpId level = 0; level < operators; ++level) {
      const auto end = static_cast<std::int32_t>(lattice_.count_.size());
      const std::vector<std::vector<OpId>> ready = std::exchange(next_ready_, {});
      known_.clear();
      for (std::int32_t ideal = first; ideal < end; ++ideal) {
        if (ideal % kIdealsBetweenClocks == 0 && std::chrono::steady_clock::now() > deadline_) return false;
        for (const OpId op : ready[static_cast<std::size_t>(ideal - first)]) {
          const std::int32_t cover = with(ideal, op, ready[static_cast<std::size_t>(ideal - first)]);
          if (cover < 0) return false;
          lattice_.covers_.push_back({cover, op});
        }
        lattice_.start_.push_back(lattice_.covers_.size());
      }
      first = end;
    }
    lattice_.start_.push_back(lattice_.covers_.size());  // nothing covers the whole
    return true;
  }

 private:
  static constexpr std::int32_t kIdealsBetweenClocks = 64;

  // Takes operators first come, first served: those that are ready at once are independent, and each set of them makes
  // an ideal of what was taken before.
  bool too_wide(OpId operators) const {
    std::vector<std::size_t> missing;
    std::vector<OpId> order;
    for (OpId op = 0; op < operators; ++op) {
      missing.push_back(needed_.of(op).size());
      if (missing.back() == 0) order.push_back(op);
    }
    const auto most_ready = static_cast<std::size_t>(std::bit_width(most_));
    for (std::size_t taken = 0; taken < order.size(); ++taken) {
      if (order.size() - taken >= most_ready) return true;
      for (const OpId behind : behind_.of(order[taken])) {
        if (--missing[static_cast<std::size_t>(behind)] == 0) order.push_back(behind);
      }
    }
    return false;
  }

  auto words_of(std::int32_t ideal) const {
    return lattice_.bits_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(ideal) * lattice_.words_);
  }

  // The ideal with one operator more, made if it is not known; -1: too many. `addable`: what may be added to `ideal`.
  std::int32_t with(std::int32_t ideal, OpId op, const std::vector<OpId>& addable) {
    std::copy_n(words_of(ideal), bits_.size(), bits_.begin());
    bits_[static_cast<std::size_t>(op) / 64] |= std::uint64_t{1} << (op % 64);
    const std::uint64_t hash = mixed(bits_);
    for (auto [at, last] = known_.equal_range(hash); at != last; ++at) {
      if (std::equal(bits_.begin(), bits_.end(), words_of(at->second))) return at->second;
    }
    if (lattice_.count_.size() >= most_) return -1;
    const auto made = static_cast<std::int32_t>(lattice_.count_.size());
    known_.emplace(hash, made);
    lattice_.bits_.insert(lattice_.bits_.end(), bits_.begin(), bits_.end());
    lattice_.count_.push_back(lattice_.operators_in(ideal) + 1);
    std::vector<OpId> ready = addable;
    ready.erase(std::find(ready.begin(), ready.end(), op));
    for (const OpId behind : behind_.of(op)) {
      const auto needs = needed_.of(behind);
      if (!std::all_of(needs.begin(), needs.end(), [&](OpId need) { return lattice_.contains(made, need); })) continue;
      ready.insert(std::lower_bound(ready.begin(), ready.end(), behind), behind);
    }
    next_ready_.push_back(std::move(ready));
    return made;
  }

  Lattice& lattice_;
  const OpEdges& behind_;
  OpEdges needed_;
  std::size_t most_;
  std::vector<std::uint64_t> bits_;  // of the ideal that is looked for
  std::chrono::steady_clock::time_point deadline_;
  std::unordered_multimap<std::uint64_t, std::int32_t> known_;  // ideals of the next level by hash
  std::vector<std::vector<OpId>> next_ready_;                   // what may be added to each of them
};

std::optional<Lattice> Lattice::of(const Graph& graph, const OpEdges& successors, std::size_t most,
                                   std::chrono::steady_clock::time_point deadline) {
  Lattice lattice(graph);
  if (!Growth(lattice, successors, most, deadline).run(static_cast<OpId>(graph.size()))) return std::nullopt;
  return lattice;
}

Lattice Lattice::of(const Graph& graph, const Order& order) {
  Lattice lattice(graph);
  lattice.bits_.assign(lattice.words_ * (order.size() + 1), 0);
  lattice.start_.push_back(0);
  for (std::size_t i = 0; i <= order.size(); ++i) {
    lattice.count_.push_back(static_cast<std::int32_t>(i));
    if (i > 0) {
      const auto at = lattice.bits_.begin() + static_cast<std::ptrdiff_t>(i * lattice.words_);
      std::copy(at - static_cast<std::ptrdiff_t>(lattice.words_), at, at);
      *(at + order[i - 1] / 64) |= std::uint64_t{1} << (order[i - 1] % 64);
    }
    if (i < order.size()) lattice.covers_.push_back({static_cast<std::int32_t>(i + 1), order[i]});
    lattice.start_.push_back(lattice.covers_.size());
  }
  return lattice;
}

std::vector<OpId> Lattice::between(int inner, int outer) const {
  std::vector<OpId> ops;
  for (std::size_t word = 0; word < words_; ++word) {
    std::uint64_t bits = bits_[static_cast<std::size_t>(outer) * words_ + word] &
                         ~bits_[static_cast<std::size_t>(inner) * words_ + word];
    for (; bits != 0; bits &= bits - 1) {
      ops.push_back(static_cast<OpId>(word * 64 + static_cast<std::size_t>(std::countr_zero(bits))));
    }
  }
  return ops;
}

}  // namespace millrace::partitioners::ideals
