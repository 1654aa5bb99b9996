// All islands, spread over the ranks that search together: the same seed gives the same plan on any number of ranks.
#pragma once

#include "partitioners/common/islands/chromosome.h"

namespace millrace::partitioners::islands {

struct Settings {
  int population = 48;  ///< of all islands together
  int islands = 8;
  int stale_generations = 50;  ///< after so many without progress (0.01 %) the search is over
  int migration_every = 5;     ///< generations
};

/// Islands breed, and the best of each goes to the next in a ring. Ranks agree on the end at each migration: when the
/// search is stale, or when the deadline has passed on one of them. The divisions are the best of each island, best
/// first, the same on all ranks.
fm::Found search(const fm::Task& task, const Settings& settings, fm::Deadline deadline, plan::Exchange* exchange);

/// An individual as a text without line breaks, and back; the value is part of it.
std::string to_text(const Individual& individual);
Individual from_text(std::string_view text);

}  // namespace millrace::partitioners::islands
