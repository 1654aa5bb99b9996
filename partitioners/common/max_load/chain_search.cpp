// Layers of ideals; the stages behind each are enumerated depth first, each once, by taking or leaving one item at a
// time.
#include "partitioners/common/max_load/chain_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/limits.h"

namespace millrace::partitioners::max_load {
namespace {

constexpr double kSumRounding = 1e-12;         // of sums that are taken apart again
constexpr std::uint64_t kStatesPerLook = 512;  // at the clock

}  // namespace

ChainSearch::ChainSearch(const Model& model, double threshold, const SearchLimits& limits)
    : model_(model), threshold_(threshold), limits_(limits), ideals_(model.size()), stage_(model) {}

Verdict ChainSearch::run() {
  prepare();
  const std::vector<std::uint64_t> none(ideals_.words(), 0);
  reach(ideals_.insert(none, 0), 0, kNone, 0);
  std::uint64_t everything_hash = 0;
  std::vector<std::uint64_t> everything(ideals_.words(), 0);
  for (Item item = 0; item < model_.size(); ++item) {
    everything[item / 64] |= std::uint64_t{1} << (item % 64);
    everything_hash ^= ideals_.item_hash(item);
  }
  while (!next_layer_.empty()) {
    if (!layer()) return Verdict::stopped;
    const std::uint32_t whole = ideals_.find(everything, everything_hash);
    if (whole == IdealSet::kNone) continue;
    std::uint32_t best = first_state_[whole];
    for (std::uint32_t s = best; s != kNone; s = states_[s].next) {
      if (states_[s].load < states_[best].load) best = s;
    }
    trace(best);
    return Verdict::found;
  }
  return Verdict::none;
}

void ChainSearch::prepare() {
  std::uint32_t stride = 1;
  bool cores = false;
  for (const DeviceKind& kind : model_.kinds) {
    radix_.push_back(static_cast<std::uint32_t>(kind.devices.size()) + 1);
    stride_.push_back(stride);
    stride *= radix_.back();
    cores = cores || kind.cpu;
  }
  free_.resize(stride);
  for (std::uint32_t used = 0; used < stride; ++used) {
    for (std::size_t kind = 0; kind < radix_.size(); ++kind) {
      const std::uint32_t count = radix_[kind] - 1 - used_of(used, kind);
      if (count == 0) continue;
      free_[used].devices += count;
      (model_.kinds[kind].cpu ? free_[used].cores : free_[used].accelerators) += count;
      free_[used].memory += count * model_.kinds[kind].memory;
    }
  }
  any_core_takes_.assign(model_.size(), false);
  for (Item item = 0; item < model_.size(); ++item) {
    any_core_takes_[item] = cores && model_.cpu_s[item] == 0;
    all_.bytes += model_.bytes[item];
    if (model_.accelerator_s[item] == kNever) {
      all_.core_s += model_.cpu_s[item];
    } else if (!any_core_takes_[item]) {
      all_.accelerator_s += model_.accelerator_s[item];
      if (cores) core_gain_ = std::max(core_gain_, model_.accelerator_s[item] / model_.cpu_s[item]);
    }
  }
  // No device has more to do than all there is: products with it stay finite.
  for (const Transfer& transfer : model_.transfers) capacity_ += transfer.seconds;
  for (Item item = 0; item < model_.size(); ++item) {
    capacity_ += model_.cpu_s[item];
    if (model_.accelerator_s[item] < kNever) capacity_ += model_.accelerator_s[item];
  }
  capacity_ = std::min(capacity_, threshold_);
  earlier_.assign(model_.size(), false);
  waiting_.assign(model_.size(), 0);
}

void ChainSearch::take(Left& left, Item item) const {
  left.bytes -= model_.bytes[item];
  if (model_.accelerator_s[item] == kNever) {
    left.core_s -= model_.cpu_s[item];
  } else if (!any_core_takes_[item]) {
    left.accelerator_s -= model_.accelerator_s[item];
  }
}

bool ChainSearch::covers(std::uint32_t fewer, std::uint32_t used) const {
  for (std::size_t kind = 0; kind < radix_.size(); ++kind) {
    if (used_of(fewer, kind) > used_of(used, kind)) return false;
  }
  return true;
}

// Accelerator seconds that free devices can take off what is left.
double ChainSearch::accelerator_capacity(const Left& left, const Free& free) const {
  return free.accelerators * capacity_ + core_gain_ * std::max(0.0, free.cores * capacity_ - left.core_s);
}

bool ChainSearch::can_finish(const Left& left, std::uint32_t used) const {
  const Free& free = free_[used];
  return left.core_s <= free.cores * capacity_ + kSumRounding * all_.core_s &&
         left.bytes <= free.memory + kSumRounding * all_.bytes &&
         left.accelerator_s <= accelerator_capacity(left, free) + kSumRounding * all_.accelerator_s;
}

double ChainSearch::least_compute(const Left& left, std::size_t kind, const std::vector<std::uint32_t>& states) const {
  if (model_.kinds[kind].cpu) return 0;
  double least = kNever;
  for (const std::uint32_t s : states) {
    const Free& free = free_[states_[s].used + stride_[kind]];
    least = std::min(least, left.accelerator_s - accelerator_capacity(left, free));
  }
  return least - kSumRounding * all_.accelerator_s;
}

bool ChainSearch::stopped() {
  if (stopped_ || ++steps_ % kStatesPerLook != 0) return stopped_;
  const std::size_t bytes = ideals_.bytes() + states_.capacity() * sizeof(State);
  stopped_ = bytes > limits_.bytes || steps_ > limits_.steps || std::chrono::steady_clock::now() > limits_.deadline;
  return stopped_;
}

bool ChainSearch::layer() {
  layer_.clear();
  layer_.swap(next_layer_);
  for (const std::uint32_t ideal : layer_) in_next_[ideal] = false;
  layer_begin_ = layer_end_;
  layer_end_ = static_cast<std::uint32_t>(states_.size());
  for (const std::uint32_t ideal : layer_) {
    const std::vector<std::uint32_t> states = worth_expanding(ideal);
    for (std::size_t kind = 0; kind < radix_.size(); ++kind) {
      std::vector<std::uint32_t> mine;
      for (const std::uint32_t s : states) {
        if (!available(states_[s].used, kind)) continue;
        if (free_[states_[s].used].devices == 1) {
          finish(kind, s);
        } else {
          mine.push_back(s);
        }
      }
      if (!mine.empty()) expand(ideal, kind, mine);
      if (stopped_) return false;
    }
  }
  return true;
}

void ChainSearch::unpack(std::uint32_t ideal) {
  const IdealSet::Words words = ideals_.ideal(ideal);
  here_.assign(words.begin(), words.end());
  hash_ = ideals_.hash(ideal);
  for (Item item = 0; item < model_.size(); ++item) earlier_[item] = (here_[item / 64] >> (item % 64) & 1) != 0;
  candidates_.clear();
  for (Item item = 0; item < model_.size(); ++item) {
    if (earlier_[item]) continue;
    waiting_[item] = 0;
    for (const Item before : model_.before[item]) waiting_[item] += earlier_[before] ? 0U : 1U;
    if (waiting_[item] == 0) candidates_.push_back(item);
  }
}

bool ChainSearch::never_missed(Item item) const {
  double gain = model_.accelerator_s[item];
  for (const std::size_t t : model_.touching[item]) {
    const Transfer& transfer = model_.transfers[t];
    bool read_before = false, read_behind = false;  // by others
    for (const Item reader : transfer.to) {
      if (reader != item) (earlier_[reader] ? read_before : read_behind) = true;
    }
    if (transfer.from != item && earlier_[transfer.from]) {
      if (!read_behind) gain += transfer.seconds;
    } else if (!read_before) {
      gain -= transfer.seconds;  // its readers behind, or its producer there, begin to pay
    }
  }
  return gain >= 0;
}

bool ChainSearch::known(std::uint32_t ideal, std::uint32_t used) const {
  for (std::uint32_t s = first_state_[ideal]; s != kNone; s = states_[s].next) {
    if (covers(states_[s].used, used)) return true;
  }
  return false;
}

std::vector<std::uint32_t> ChainSearch::worth_expanding(std::uint32_t ideal) {
  std::vector<std::uint32_t> states;
  for (std::uint32_t s = first_state_[ideal]; s != kNone; s = states_[s].next) {
    if (s >= layer_begin_ && s < layer_end_ && free_[states_[s].used].devices > 0) states.push_back(s);
  }
  unpack(ideal);
  for (const Item item : candidates_) {
    if (states.empty()) break;
    if (!never_missed(item)) continue;
    here_[item / 64] ^= std::uint64_t{1} << (item % 64);
    const std::uint32_t larger = ideals_.find(here_, hash_ ^ ideals_.item_hash(item));
    here_[item / 64] ^= std::uint64_t{1} << (item % 64);
    if (larger == IdealSet::kNone) continue;
    std::erase_if(states, [&](std::uint32_t s) { return known(larger, states_[s].used); });
  }
  return states;
}

void ChainSearch::finish(std::size_t kind, std::uint32_t state) {
  const DeviceKind& device = model_.kinds[kind];
  stage_.start(earlier_, device);
  std::vector<std::uint64_t> everything = here_;
  std::uint64_t hash = hash_;
  for (Item item = 0; item < model_.size(); ++item) {
    if (earlier_[item]) continue;
    stage_.add(item);
    if (stage_.committed() >= threshold_ || stage_.bytes() > device.memory) return;
    everything[item / 64] |= std::uint64_t{1} << (item % 64);
    hash ^= ideals_.item_hash(item);
  }
  if (stage_.load() >= threshold_) return;
  const State from = states_[state];
  reach(ideals_.insert(everything, hash), from.used + stride_[kind], state, std::max(from.load, stage_.load()));
}

void ChainSearch::expand(std::uint32_t ideal, std::size_t kind, const std::vector<std::uint32_t>& states) {
  const DeviceKind& device = model_.kinds[kind];
  unpack(ideal);
  stage_.start(earlier_, device);
  Left left = all_;
  for (Item item = 0; item < model_.size(); ++item) {
    if (earlier_[item]) take(left, item);
  }
  least_compute_ = least_compute(left, kind, states);
  frames_.clear();
  frames_.push_back({0, 0, candidates_.size(), left, 0, true});
  while (!frames_.empty() && !stopped()) {
    Frame& frame = frames_.back();
    const bool first = frame.next == frame.begin;
    // The candidate tried last comes later, in all that follows here.
    if (!first) stage_.exclude(candidates_[frame.next - 1]);
    if (frame.next == frame.end || (!first && hopeless())) {
      for (std::size_t c = frame.next; c-- > frame.begin;) stage_.undo_exclude(candidates_[c]);
      if (!frame.exceeded) offer(kind, frame.left, states);
      ascend();
    } else {
      descend(frame, device);
    }
  }
  // Ended early: candidates_ and waiting_ are made anew for the next ideal.
}

// Takes the next candidate into the stage, unless no stage with it stays below the threshold.
void ChainSearch::descend(Frame& frame, const DeviceKind& kind) {
  const Item item = candidates_[frame.next++];
  const bool harmless = !frame.exceeded && never_missed(item);
  stage_.add(item);
  if (hopeless() || stage_.bytes() > kind.memory) return stage_.undo_add(item);
  if (harmless && stage_.load() < threshold_) frame.exceeded = true;
  here_[item / 64] |= std::uint64_t{1} << (item % 64);
  hash_ ^= ideals_.item_hash(item);
  earlier_[item] = true;
  Frame child;
  child.begin = child.next = candidates_.size();
  for (std::size_t c = frame.next; c < frame.end; ++c) candidates_.push_back(candidates_[c]);
  for (const Item after : model_.after[item]) {
    if (--waiting_[after] == 0) candidates_.push_back(after);
  }
  child.end = candidates_.size();
  child.left = frame.left;
  take(child.left, item);
  child.item = item;
  child.exceeded = stage_.load() >= threshold_;
  frames_.push_back(child);
}

void ChainSearch::ascend() {
  const Frame frame = frames_.back();
  candidates_.resize(frame.begin);
  frames_.pop_back();
  if (frames_.empty()) return;
  stage_.undo_add(frame.item);
  here_[frame.item / 64] ^= std::uint64_t{1} << (frame.item % 64);
  hash_ ^= ideals_.item_hash(frame.item);
  earlier_[frame.item] = false;
  for (const Item after : model_.after[frame.item]) ++waiting_[after];
}

void ChainSearch::offer(std::size_t kind, const Left& left, const std::vector<std::uint32_t>& states) {
  const double load = stage_.load();
  std::uint32_t ideal = IdealSet::kNone;
  for (const std::uint32_t s : states) {
    const State from = states_[s];
    const std::uint32_t used = from.used + stride_[kind];
    if (!can_finish(left, used)) continue;
    if (ideal == IdealSet::kNone) ideal = ideals_.insert(here_, hash_);
    reach(ideal, used, s, std::max(from.load, load));
  }
}

void ChainSearch::reach(std::uint32_t ideal, std::uint32_t used, std::uint32_t parent, double load) {
  if (ideal == first_state_.size()) {
    first_state_.push_back(kNone);
    in_next_.push_back(false);
  }
  for (std::uint32_t s = first_state_[ideal]; s != kNone; s = states_[s].next) {
    State& state = states_[s];
    if (!covers(state.used, used)) continue;
    if (state.used == used && load < state.load) {
      state.load = load;
      state.parent = parent;
    }
    return;
  }
  State state;
  state.ideal = ideal;
  state.used = used;
  state.parent = parent;
  state.next = first_state_[ideal];
  state.load = load;
  first_state_[ideal] = static_cast<std::uint32_t>(states_.size());
  states_.push_back(state);
  if (!in_next_[ideal]) next_layer_.push_back(ideal);
  in_next_[ideal] = true;
}

void ChainSearch::trace(std::uint32_t state) {
  chain_.clear();
  for (std::uint32_t s = state; states_[s].parent != kNone; s = states_[s].parent) {
    const State& from = states_[states_[s].parent];
    Part part;
    const std::uint32_t step = states_[s].used - from.used;
    part.kind = static_cast<std::size_t>(std::find(stride_.begin(), stride_.end(), step) - stride_.begin());
    const auto all = ideals_.ideal(states_[s].ideal), before = ideals_.ideal(from.ideal);
    for (Item item = 0; item < model_.size(); ++item) {
      if (((all[item / 64] & ~before[item / 64]) >> (item % 64) & 1) != 0) part.items.push_back(item);
    }
    chain_.push_back(std::move(part));
  }
  std::reverse(chain_.begin(), chain_.end());
}

}  // namespace millrace::partitioners::max_load
