// First individuals, selection and replacement.
#include "partitioners/common/islands/island.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace::partitioners::islands {
namespace {

constexpr std::size_t kElite = 2;
constexpr int kTournament = 3;

bool late(fm::Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

}  // namespace

Island::Island(const fm::Task& task, int number, int islands, int population)
    : task_(&task), number_(number), islands_(islands), size_(static_cast<std::size_t>(population)) {}

// Individuals of all islands in turn: the topological orders as they are, then strangers.
void Island::settle(fm::Deadline deadline) {
  const std::vector<Order>& orders = *task_->orders;
  for (std::size_t i = 0; i < size_ && (i == 0 || !late(deadline)); ++i) {
    const std::size_t number = i * static_cast<std::size_t>(islands_) + static_cast<std::size_t>(number_);
    if (number < orders.size()) {
      const fm::Ends ends = fm::equal_time_ends(*task_->model.machine, orders[number]);
      population_.push_back(grown(*task_, fm::positions(orders[number]), ends, effort_, deadline));
    } else {
      fm::Draws draws(task_->problem->seed, "genetic first", number);
      population_.push_back(stranger(draws, deadline));
    }
  }
  std::stable_sort(population_.begin(), population_.end());
}

// One that descends from nobody.
Individual Island::stranger(fm::Draws& draws, fm::Deadline deadline) const {
  const fm::Start start = fm::random_start(*task_->model.machine, *task_->successors, *task_->orders, draws);
  return grown(*task_, start.keys, start.ends, effort_, deadline);
}

const Individual& Island::tournament(fm::Draws& draws) const {
  std::size_t best = population_.size();
  for (int i = 0; i < kTournament; ++i) {
    best = std::min(best, static_cast<std::size_t>(draws.below(population_.size())));  // sorted: lower is better
  }
  return population_[best];
}

Individual Island::child(fm::Draws& draws, fm::Deadline deadline) const {
  const Individual& a = tournament(draws);
  const Individual& b = tournament(draws);
  if (draws.coin() && a.stage_of != b.stage_of) return combined_child(*task_, a, b, effort_, deadline);
  return uniform_child(*task_, a, b, draws, effort_, deadline);
}

bool Island::holds(const std::vector<Individual>& some, const Individual& other) {
  return std::any_of(some.begin(), some.end(),
                     [&](const Individual& one) { return one.value == other.value && one.stage_of == other.stage_of; });
}

void Island::next_generation(fm::Deadline deadline) {
  ++generation_;
  const std::size_t elite = std::min(kElite, population_.size());
  std::vector<Individual> next(population_.begin(), population_.begin() + static_cast<std::ptrdiff_t>(elite));
  for (std::size_t i = elite; i < population_.size(); ++i) {
    if (late(deadline)) {
      next.push_back(population_[i]);
      continue;
    }
    fm::Draws draws(task_->problem->seed, "genetic children",
                    generation_ * static_cast<std::uint64_t>(islands_) + static_cast<std::uint64_t>(number_), i);
    Individual made = child(draws, deadline);
    // A division that is there already breeds nothing new.
    if (holds(next, made)) made = stranger(draws, deadline);
    next.push_back(std::move(made));
  }
  population_ = std::move(next);
  std::stable_sort(population_.begin(), population_.end());
}

void Island::receive(const Individual& migrant) {
  if (holds(population_, migrant)) return;
  population_.back() = migrant;
  std::stable_sort(population_.begin(), population_.end());
}

}  // namespace millrace::partitioners::islands
