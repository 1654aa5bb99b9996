// Calls Scotch within a context of its own.
#include "partitioners/scotch.h"

#include <cstdint>
#include <cstdio>  // scotch.h needs it
#include <limits>
#include <memory>
#include <utility>

#include <scotch.h>

#include "partitioners/common/library/plans.h"
#include "partitioners/common/library/quiet.h"

namespace millrace::partitioners {
namespace {

// An object of Scotch that ends with its scope. `Init` says 0 when it worked.
template <class Object, int (*Init)(Object*), void (*Exit)(Object*)>
class Owned {
 public:
  Owned() : sound_(Init(&object_) == 0) {}
  ~Owned() {
    if (sound_) Exit(&object_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  bool sound() const { return sound_; }
  Object* get() { return &object_; }

 private:
  Object object_{};
  bool sound_;
};

using Context = Owned<SCOTCH_Context, SCOTCH_contextInit, SCOTCH_contextExit>;
using Source = Owned<SCOTCH_Graph, SCOTCH_graphInit, SCOTCH_graphExit>;
using Strategy = Owned<SCOTCH_Strat, SCOTCH_stratInit, SCOTCH_stratExit>;

// `graph` is read only, but Scotch asks for pointers to what it might change.
library::Answer divide(library::PartGraph graph, int parts, double imbalance, std::uint64_t seed) {
  static_assert(sizeof(SCOTCH_Num) == sizeof(std::int32_t), "Scotch with 32-bit numbers, as Debian has it");
  const library::Quiet quiet;  // it prints warnings and errors
  Context context;
  Source source, bound;
  Strategy strategy;
  library::Answer answer;
  answer.why_not = "Scotch: cannot start";
  if (!context.sound() || !source.sound() || !bound.sound() || !strategy.sound()) return answer;
  const int one_thread[] = {0};
  SCOTCH_contextThreadSpawn(context.get(), 1, one_thread);
  SCOTCH_contextOptionSetNum(context.get(), SCOTCH_OPTIONNUMDETERMINISTIC, 1);
  SCOTCH_contextRandomClone(context.get());
  SCOTCH_contextRandomSeed(context.get(), static_cast<SCOTCH_Num>(seed % std::numeric_limits<SCOTCH_Num>::max()));
  SCOTCH_contextRandomReset(context.get());

  const auto edges = static_cast<SCOTCH_Num>(graph.ends.size());
  answer.why_not = "Scotch: wrong input";
  if (SCOTCH_graphBuild(source.get(), 0, graph.vertices(), graph.start.data(), graph.start.data() + 1,
                        graph.weights.data(), nullptr, edges, graph.ends.data(), graph.edge_weights.data()) != 0 ||
      SCOTCH_contextBindGraph(context.get(), source.get(), bound.get()) != 0 ||
      SCOTCH_stratGraphMapBuild(strategy.get(), SCOTCH_STRATQUALITY, parts, imbalance) != 0) {
    return answer;
  }
  answer.parts.assign(static_cast<std::size_t>(graph.vertices()), 0);
  const bool done = SCOTCH_graphPart(bound.get(), parts, strategy.get(), answer.parts.data()) == 0;
  answer.why_not = done ? "" : "Scotch: failed";
  return answer;
}

}  // namespace

config::Options scotch_options() {
  return {
      {"imbalance", "part of the mean by which Scotch may exceed it in a part", config::Real{0.001, 10.0}, "0.03"},
      {"time_limit", "stop after this long and return the best so far", config::Duration{}, "10 s"},
  };
}

plan::PlanSet scotch(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  const double imbalance = options.real("imbalance");
  const library::Divide way = [&problem, imbalance](const library::PartGraph& graph, int parts) {
    return divide(graph, parts, imbalance, problem.seed);
  };
  return library::divided_plans(problem, evaluate, "scotch", options.duration("time_limit"), {way});
}

}  // namespace millrace::partitioners
