// The loop over epochs: breed, exchange, migrate.
#include "partitioners/common/islands/archipelago.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "partitioners/common/islands/island.h"

namespace millrace::partitioners::islands {
namespace {

// Reads numbers that are set apart by single spaces.
class Numbers {
 public:
  explicit Numbers(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool more() const { return at_ < end_; }
  std::uint64_t next() {
    std::uint64_t number = 0;
    at_ = std::from_chars(at_, end_, number).ptr;
    if (at_ < end_) ++at_;
    return number;
  }
  std::int32_t next_small() { return static_cast<std::int32_t>(next()); }

 private:
  const char* at_;
  const char* end_;
};

void append(std::string& text, std::uint64_t number) { fmt::format_to(std::back_inserter(text), "{} ", number); }

void append(std::string& text, const Individual& individual) {
  append(text, std::bit_cast<std::uint64_t>(individual.value.fitness));
  append(text, std::bit_cast<std::uint64_t>(individual.value.guide));
  append(text, individual.ends.size());
  for (const std::int32_t end : individual.ends) append(text, static_cast<std::uint64_t>(end));
  for (const std::int32_t key : individual.keys) append(text, static_cast<std::uint64_t>(key));
}

Individual read(Numbers& numbers) {
  Individual individual;
  individual.value.fitness = std::bit_cast<double>(numbers.next());
  individual.value.guide = std::bit_cast<double>(numbers.next());
  individual.ends.resize(numbers.next());
  for (std::int32_t& end : individual.ends) end = numbers.next_small();
  individual.keys.resize(static_cast<std::size_t>(individual.ends.back()));
  for (std::int32_t& key : individual.keys) key = numbers.next_small();
  Order order(individual.keys.size());
  for (std::size_t op = 0; op < order.size(); ++op) {
    order[static_cast<std::size_t>(individual.keys[op])] = static_cast<OpId>(op);
  }
  individual.stage_of = fm::divided(order, individual.ends);
  return individual;
}

// Part by which the best must get better for the search to go on: less is not worth its time.
constexpr double kProgress = 1e-4;

class Archipelago {
 public:
  Archipelago(const fm::Task& task, const Settings& settings, fm::Deadline deadline, plan::Exchange* exchange)
      : settings_(settings),
        deadline_(deadline),
        exchange_(exchange),
        bests_(static_cast<std::size_t>(settings.islands)) {
    const int rank = exchange == nullptr ? 0 : exchange->rank();
    const int ranks = exchange == nullptr ? 1 : exchange->size();
    for (int island = rank; island < settings.islands; island += ranks) {
      // The first islands are larger where the population does not divide.
      const int population = (settings.population + settings.islands - 1 - island) / settings.islands;
      owned_.emplace_back(island, Island(task, island, settings.islands, std::max(2, population)));
    }
  }

  fm::Found run() {
    for (auto& [number, island] : owned_) island.settle(deadline_);
    bool late = exchange_bests();
    const int epoch = std::min(settings_.migration_every, settings_.stale_generations);
    double mark = best().value.fitness;
    for (int stale = 0; !late && stale < settings_.stale_generations;) {
      for (auto& [number, island] : owned_) {
        for (int i = 0; i < epoch; ++i) island.next_generation(deadline_);
      }
      late = exchange_bests();
      stale += epoch;
      if (best().value.fitness < mark * (1 - kProgress)) {
        mark = best().value.fitness;
        stale = 0;
      }
      for (auto& [number, island] : owned_) {
        const int from = (number + settings_.islands - 1) % settings_.islands;
        island.receive(*bests_[static_cast<std::size_t>(from)]);
      }
    }
    return found(late);
  }

 private:
  const Individual& best() const {
    return **std::min_element(bests_.begin(), bests_.end(), [](const auto& a, const auto& b) { return *a < *b; });
  }

  // Every rank gets the best of every island. True if one of them is late.
  bool exchange_bests() {
    const bool mine = std::chrono::steady_clock::now() >= deadline_;
    if (exchange_ == nullptr) {
      for (const auto& [number, island] : owned_) bests_[static_cast<std::size_t>(number)] = island.best();
      return mine;
    }
    std::string text;
    append(text, mine ? 1 : 0);
    for (const auto& [number, island] : owned_) {
      append(text, static_cast<std::uint64_t>(number));
      append(text, island.best());
    }
    bool late = false;
    for (const std::string& said : exchange_->gather_to_all(text)) {
      Numbers numbers(said);
      late = numbers.next() == 1 || late;
      while (numbers.more()) {
        const std::uint64_t number = numbers.next();
        bests_[number] = read(numbers);
      }
    }
    return late;
  }

  fm::Found found(bool late) {
    fm::Found found;
    found.stopped = late;
    for (std::optional<Individual>& individual : bests_) {
      found.divisions.push_back({std::move(individual->stage_of), individual->value});
    }
    std::stable_sort(found.divisions.begin(), found.divisions.end(),
                     [](const auto& a, const auto& b) { return a.value < b.value; });
    // The same division on several islands is one.
    const auto same = [](const auto& a, const auto& b) { return a.value == b.value && a.stage_of == b.stage_of; };
    found.divisions.erase(std::unique(found.divisions.begin(), found.divisions.end(), same), found.divisions.end());
    return found;
  }

  Settings settings_;
  fm::Deadline deadline_;
  plan::Exchange* exchange_;
  std::vector<std::pair<int, Island>> owned_;
  std::vector<std::optional<Individual>> bests_;  // by island
};

}  // namespace

fm::Found search(const fm::Task& task, const Settings& settings, fm::Deadline deadline, plan::Exchange* exchange) {
  return Archipelago(task, settings, deadline, exchange).run();
}

std::string to_text(const Individual& individual) {
  std::string text;
  append(text, individual);
  return text;
}

Individual from_text(std::string_view text) {
  Numbers numbers(text);
  return read(numbers);
}

}  // namespace millrace::partitioners::islands
