// Down-sets are made size by size, each from one that lacks one of its items.
#include "partitioners/common/prefixes.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <unordered_set>
#include <utility>

namespace millrace::partitioners {
namespace {

using Bits = std::vector<std::uint64_t>;

void set(std::span<std::uint64_t> bits, int item) {
  bits[static_cast<std::size_t>(item) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(item) % 64);
}

bool get(std::span<const std::uint64_t> bits, int item) {
  return ((bits[static_cast<std::size_t>(item) / 64] >> (static_cast<std::size_t>(item) % 64)) & 1) != 0;
}

std::vector<std::vector<int>> producers_of(const ItemGraph& readers) {
  std::vector<std::vector<int>> producers(readers.size());
  for (std::size_t item = 0; item < readers.size(); ++item) {
    for (const int reader : readers[item])
      producers[static_cast<std::size_t>(reader)].push_back(static_cast<int>(item));
  }
  return producers;
}

// Bit sets that lie one after the other in a list, found by content.
class Known {
 public:
  Known(const Bits& bits, std::size_t words) : known_(64, Hash{&bits, words}, Equal{&bits, words}) {}

  /// False when the set at `index` is there already.
  bool insert(std::size_t index) { return known_.insert(index).second; }

 private:
  struct Hash {
    const Bits* bits;
    std::size_t words;
    std::size_t operator()(std::size_t index) const {
      std::uint64_t hash = 0;
      for (std::size_t w = 0; w < words; ++w) {
        hash = (hash ^ (*bits)[index * words + w]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
      }
      return static_cast<std::size_t>(hash);
    }
  };
  struct Equal {
    const Bits* bits;
    std::size_t words;
    bool operator()(std::size_t a, std::size_t b) const {
      return std::equal(bits->begin() + static_cast<std::ptrdiff_t>(a * words),
                        bits->begin() + static_cast<std::ptrdiff_t>((a + 1) * words),
                        bits->begin() + static_cast<std::ptrdiff_t>(b * words));
    }
  };
  std::unordered_set<std::size_t, Hash, Equal> known_;
};

}  // namespace

std::vector<int> order_by_key(const ItemGraph& readers, std::span<const double> keys) {
  std::vector<std::size_t> missing(readers.size(), 0);
  for (const auto& list : readers) {
    for (const int reader : list) ++missing[static_cast<std::size_t>(reader)];
  }
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> ready;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    if (missing[i] == 0) ready.emplace(keys[i], static_cast<int>(i));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int item = ready.top().second;
    ready.pop();
    order.push_back(item);
    for (const int reader : readers[static_cast<std::size_t>(item)]) {
      if (--missing[static_cast<std::size_t>(reader)] == 0)
        ready.emplace(keys[static_cast<std::size_t>(reader)], reader);
    }
  }
  return order;
}

void Prefixes::append(std::span<const std::uint64_t> bits, std::size_t count) {
  bits_.insert(bits_.end(), bits.begin(), bits.end());
  counts_.push_back(count);
}

std::optional<Prefixes> Prefixes::all(const ItemGraph& readers, std::size_t most,
                                      std::chrono::steady_clock::time_point deadline) {
  const std::vector<std::vector<int>> producers = producers_of(readers);
  Prefixes prefixes;
  prefixes.items_ = readers.size();
  prefixes.words_ = std::max<std::size_t>(1, (readers.size() + 63) / 64);
  prefixes.complete_ = true;
  const std::size_t words = prefixes.words_;
  Bits next(words, 0);
  prefixes.append(next, 0);
  std::size_t begin = 0;
  for (std::size_t count = 1; count <= readers.size(); ++count) {
    const std::size_t end = prefixes.size();
    Known known(prefixes.bits_, words);
    for (std::size_t from = begin; from < end; ++from) {
      if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
      const auto first = prefixes.bits_.begin() + static_cast<std::ptrdiff_t>(from * words);
      const Bits base(first, first + static_cast<std::ptrdiff_t>(words));
      for (std::size_t item = 0; item < readers.size(); ++item) {
        const auto inside = [&](int producer) { return get(base, producer); };
        if (inside(static_cast<int>(item)) || !std::all_of(producers[item].begin(), producers[item].end(), inside)) {
          continue;
        }
        next = base;
        set(next, static_cast<int>(item));
        prefixes.append(next, count);
        if (known.insert(prefixes.size() - 1)) {
          if (prefixes.size() > most) return std::nullopt;
        } else {
          prefixes.bits_.resize(prefixes.bits_.size() - words);
          prefixes.counts_.pop_back();
        }
      }
    }
    begin = end;
  }
  return prefixes;
}

Prefixes Prefixes::of_order(std::span<const int> order, std::span<const std::size_t> cuts) {
  Prefixes prefixes;
  prefixes.items_ = order.size();
  prefixes.position_.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) prefixes.position_[static_cast<std::size_t>(order[i])] = i;
  prefixes.counts_.assign(cuts.begin(), cuts.end());
  return prefixes;
}

// Sizes ascend, each down-set once.
void Prefixes::sort_once() {
  std::vector<std::size_t> order;
  Known known(bits_, words_);
  for (std::size_t prefix = 0; prefix < size(); ++prefix) {
    if (known.insert(prefix)) order.push_back(prefix);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return counts_[a] < counts_[b]; });
  Prefixes sorted;
  for (const std::size_t prefix : order) {
    sorted.append(std::span(bits_).subspan(prefix * words_, words_), counts_[prefix]);
  }
  bits_ = std::move(sorted.bits_);
  counts_ = std::move(sorted.counts_);
}

Prefixes Prefixes::some(const ItemGraph& readers, std::span<const std::vector<int>> orders) {
  Prefixes prefixes;
  prefixes.items_ = readers.size();
  prefixes.words_ = std::max<std::size_t>(1, (readers.size() + 63) / 64);
  for (const std::vector<int>& order : orders) {
    Bits bits(prefixes.words_, 0);
    prefixes.append(bits, 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      set(bits, order[i]);
      prefixes.append(bits, i + 1);
    }
  }
  const std::vector<std::vector<int>> producers = producers_of(readers);
  std::vector<Bits> below(readers.size(), Bits(prefixes.words_, 0)), above = below;  // with the item itself
  const auto unite = [](Bits& into, const Bits& other) {
    for (std::size_t w = 0; w < into.size(); ++w) into[w] |= other[w];
  };
  const auto count = [](const Bits& bits) {
    std::size_t items = 0;
    for (const std::uint64_t word : bits) items += static_cast<std::size_t>(std::popcount(word));
    return items;
  };
  Bits full(prefixes.words_, 0);
  for (const int item : orders[0]) set(full, item);
  for (const int item : orders[0]) {
    Bits& bits = below[static_cast<std::size_t>(item)];
    set(bits, item);
    for (const int producer : producers[static_cast<std::size_t>(item)])
      unite(bits, below[static_cast<std::size_t>(producer)]);
    prefixes.append(bits, count(bits));
  }
  for (std::size_t i = orders[0].size(); i-- > 0;) {
    const auto item = static_cast<std::size_t>(orders[0][i]);
    set(above[item], orders[0][i]);
    for (const int reader : readers[item]) unite(above[item], above[static_cast<std::size_t>(reader)]);
    Bits rest = full;
    for (std::size_t w = 0; w < rest.size(); ++w) rest[w] &= ~above[item][w];
    prefixes.append(rest, count(rest));
  }
  prefixes.sort_once();
  return prefixes;
}

Prefixes Prefixes::around(const ItemGraph& readers, const Prefixes& of, std::span<const std::size_t> centres,
                          std::size_t most) {
  const std::vector<std::vector<int>> producers = producers_of(readers);
  Prefixes prefixes;
  prefixes.items_ = readers.size();
  prefixes.words_ = std::max<std::size_t>(1, (readers.size() + 63) / 64);
  Known known(prefixes.bits_, prefixes.words_);
  const auto add = [&](const Bits& bits, std::size_t count) {
    prefixes.append(bits, count);
    if (known.insert(prefixes.size() - 1)) return;
    prefixes.bits_.resize(prefixes.bits_.size() - prefixes.words_);
    prefixes.counts_.pop_back();
  };
  Bits bits(prefixes.words_, 0);
  add(bits, 0);
  for (std::size_t item = 0; item < readers.size(); ++item) set(bits, static_cast<int>(item));
  add(bits, readers.size());
  for (const std::size_t centre : centres) {
    std::size_t next = prefixes.size();
    std::fill(bits.begin(), bits.end(), 0);
    std::size_t count = 0;
    for (int item = 0; item < static_cast<int>(readers.size()); ++item) {
      if (!of.has(centre, item)) continue;
      set(bits, item);
      ++count;
    }
    add(bits, count);
    for (const std::size_t end = next + most; next < prefixes.size() && prefixes.size() < end; ++next) {
      const auto first = prefixes.bits_.begin() + static_cast<std::ptrdiff_t>(next * prefixes.words_);
      const Bits base(first, first + static_cast<std::ptrdiff_t>(prefixes.words_));
      count = prefixes.counts_[next];
      const auto inside = [&](int item) { return get(base, item); };
      for (std::size_t item = 0; item < readers.size(); ++item) {
        const bool in = inside(static_cast<int>(item));
        const std::vector<int>& others = in ? readers[item] : producers[item];
        if (in ? std::any_of(others.begin(), others.end(), inside)
               : !std::all_of(others.begin(), others.end(), inside)) {
          continue;
        }
        bits = base;
        bits[item / 64] ^= std::uint64_t{1} << (item % 64);
        add(bits, in ? count - 1 : count + 1);
      }
    }
  }
  prefixes.sort_once();
  return prefixes;
}

}  // namespace millrace::partitioners
