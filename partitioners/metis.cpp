// Calls METIS and reports what it says in words.
#include "partitioners/metis.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <metis.h>

#include "partitioners/common/library/plans.h"
#include "partitioners/common/library/quiet.h"

namespace millrace::partitioners {
namespace {

using Method = decltype(&METIS_PartGraphKway);

std::string why_not(int status) {
  switch (status) {
    case METIS_OK:
      return "";
    case METIS_ERROR_INPUT:
      return "METIS: wrong input";
    case METIS_ERROR_MEMORY:
      return "METIS: out of memory";
    default:
      return "METIS: failed";
  }
}

// METIS takes its arrays by pointer to what it might change, hence a graph of its own.
library::Answer divide(library::PartGraph graph, int parts, Method method, double imbalance, std::uint64_t seed) {
  static_assert(sizeof(idx_t) == sizeof(std::int32_t), "METIS with 32-bit indices, as Debian has it");
  std::array<idx_t, METIS_NOPTIONS> options{};
  METIS_SetDefaultOptions(options.data());
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed % std::numeric_limits<idx_t>::max());
  options[METIS_OPTION_UFACTOR] = std::max<idx_t>(1, static_cast<idx_t>(std::lround(1000 * imbalance)));
  options[METIS_OPTION_NUMBERING] = 0;
  idx_t vertices = graph.vertices(), constraints = 1, count = parts, cut = 0;
  library::Answer answer;
  answer.parts.assign(static_cast<std::size_t>(vertices), 0);
  const library::Quiet quiet;  // it prints when a part has no vertices left
  const int status =
      method(&vertices, &constraints, graph.start.data(), graph.ends.data(), graph.weights.data(), nullptr,
             graph.edge_weights.data(), &count, nullptr, nullptr, options.data(), &cut, answer.parts.data());
  answer.why_not = why_not(status);
  return answer;
}

}  // namespace

config::Options metis_options() {
  return {
      {"method", "how METIS divides: k ways at once, or in two again and again; best: both are tried",
       config::OneOf{{"kway", "recursive", "best"}}, "best"},
      {"imbalance", "part of the mean by which METIS may exceed it in a part", config::Real{0.001, 10.0}, "0.03"},
      {"time_limit", "stop after this long and return the best so far", config::Duration{}, "10 s"},
  };
}

plan::PlanSet metis(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  const std::string& method = options.text("method");
  const double imbalance = options.real("imbalance");
  std::vector<library::Divide> ways;
  for (const auto& [name, call] :
       {std::pair<std::string, Method>{"kway", METIS_PartGraphKway}, {"recursive", METIS_PartGraphRecursive}}) {
    if (method != name && method != "best") continue;
    ways.emplace_back([&problem, imbalance, call = call](const library::PartGraph& graph, int parts) {
      return divide(graph, parts, call, imbalance, problem.seed);
    });
  }
  return library::divided_plans(problem, evaluate, "metis", options.duration("time_limit"), ways);
}

}  // namespace millrace::partitioners
