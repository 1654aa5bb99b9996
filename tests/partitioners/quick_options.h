// For tests: the options of a registry row with small budgets, as what they check holds for any budget.
#pragma once

#include <cstdint>
#include <utility>

#include "partitioners/registry.h"

namespace millrace::testing_support {

inline config::Values quick_options(const partitioners::Entry& entry) {
  config::Values options = config::defaults(entry.options);
  for (const auto& [name, value] : {std::pair<const char*, std::int64_t>{"stale_generations", 2},
                                    {"population", 6},
                                    {"islands", 2},
                                    {"rounds", 2}}) {
    if (options.has(name)) options.set(name, value);
  }
  return options;
}

}  // namespace millrace::testing_support
