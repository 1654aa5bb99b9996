// Options, and islands for each shape.
#include "partitioners/genetic.h"

#include "partitioners/common/fm/shape_search.h"
#include "partitioners/common/islands/archipelago.h"

namespace millrace::partitioners {

config::Options genetic_options() {
  return {
      {"population", "individuals of all islands together", config::Integer{2, 100000}, "48"},
      {"islands", "populations that breed apart", config::Integer{1, 1024}, "8"},
      {"stale_generations", "stop after so many generations without a better plan", config::Integer{1, 1000000}, "50"},
      {"migration_every", "generations until the best of an island goes to the next", config::Integer{1, 1000000}, "5"},
      {"lambda", "weight of injected bytes, as the time that they would take on one link", config::Real{0.0, 1000.0},
       "0.01"},
      {"time_limit", "stop after this long and return the best so far", config::Duration{}, "30 s"},
  };
}

plan::PlanSet genetic(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  const islands::Settings islands{
      static_cast<int>(options.integer("population")), static_cast<int>(options.integer("islands")),
      static_cast<int>(options.integer("stale_generations")), static_cast<int>(options.integer("migration_every"))};
  const fm::SearchSettings settings{"genetic", options.real("lambda"), options.duration("time_limit"),
                                    problem.exchange};
  return fm::search_shapes(problem, settings, evaluate, [&](const fm::Task& task, fm::Deadline deadline) {
    return islands::search(task, islands, deadline, problem.exchange);
  });
}

}  // namespace millrace::partitioners
