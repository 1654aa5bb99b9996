// One island: a population that breeds on its own between migrations.
#pragma once

#include <cstdint>
#include <vector>

#include "partitioners/common/islands/chromosome.h"

namespace millrace::partitioners::islands {

class Island {
 public:
  /// `task` must outlive it. \param number  of all islands: what it draws depends on nothing else but the seed.
  Island(const fm::Task& task, int number, int islands, int population);

  /// Fills the population; past the deadline it stays smaller, one individual at least.
  void settle(fm::Deadline deadline);

  /// Breeds all but the elite anew; past the deadline the old ones stay.
  void next_generation(fm::Deadline deadline);

  const Individual& best() const { return population_.front(); }

  /// Takes the place of the worst, unless an equal division is there.
  void receive(const Individual& migrant);

 private:
  const Individual& tournament(fm::Draws& draws) const;
  Individual child(fm::Draws& draws, fm::Deadline deadline) const;
  Individual stranger(fm::Draws& draws, fm::Deadline deadline) const;
  static bool holds(const std::vector<Individual>& some, const Individual& other);

  const fm::Task* task_;
  int number_;
  int islands_;
  std::size_t size_;
  fm::Effort effort_{};
  std::uint64_t generation_ = 0;
  std::vector<Individual> population_;  // best first
};

}  // namespace millrace::partitioners::islands
