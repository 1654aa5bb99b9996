// Options, and passes from topological orders cut to equal times, then from random ones.
#include "partitioners/local_search.h"

#include <algorithm>

#include "partitioners/common/fm/shape_search.h"

namespace millrace::partitioners {
namespace {

// Topological orders cut to equal times first, then random starts.
fm::Division from_start(const fm::Task& task, std::size_t number, fm::Deadline deadline) {
  const std::vector<Order>& orders = *task.orders;
  const fm::Machine& machine = *task.model.machine;
  if (number < orders.size()) {
    const fm::Ends ends = fm::equal_time_ends(machine, orders[number]);
    return fm::improved(task, fm::divided(orders[number], ends), {}, deadline);
  }
  fm::Draws draws(task.problem->seed, "local search", number);
  const fm::Start start = fm::random_start(machine, *task.successors, orders, draws);
  return fm::improved(task, fm::divided(fm::decode(*task.successors, start.keys), start.ends), {}, deadline);
}

}  // namespace

config::Options local_search_options() {
  return {
      {"starts", "first cuts that are improved: those of topological orders, then random ones",
       config::Integer{1, 1000000}, "16"},
      {"lambda", "weight of injected bytes, as the time that they would take on one link", config::Real{0.0, 1000.0},
       "0.01"},
      {"time_limit", "stop after this long and return the best so far", config::Duration{}, "10 s"},
  };
}

plan::PlanSet local_search(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  const auto starts = static_cast<std::size_t>(options.integer("starts"));
  const fm::SearchSettings settings{"local_search", options.real("lambda"), options.duration("time_limit"), nullptr};
  return fm::search_shapes(problem, settings, evaluate, [&](const fm::Task& task, fm::Deadline deadline) {
    fm::Found found;
    const auto late = [&] { return std::chrono::steady_clock::now() >= deadline; };
    for (std::size_t i = 0; i < starts && (i == 0 || !late()); ++i) {
      found.divisions.push_back(from_start(task, i, deadline));
    }
    found.stopped = late();
    std::stable_sort(found.divisions.begin(), found.divisions.end(),
                     [](const fm::Division& a, const fm::Division& b) { return a.value < b.value; });
    return found;
  });
}

}  // namespace millrace::partitioners
