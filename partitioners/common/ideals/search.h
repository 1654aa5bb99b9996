// The best chain of ideals: a dynamic program with dominance and bounds (METHODS 6, `exact`).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "partitioners/common/ideals/makers.h"
#include "partitioners/common/ideals/measure.h"
#include "partitioners/common/ideals/stages.h"
#include "plan/assignment.h"

namespace millrace::partitioners::ideals {

/// What ends a search before it has proven its answer, and what it keeps free.
struct Limits {
  std::chrono::steady_clock::time_point deadline{};
  std::size_t states = 4'000'000;
  std::int64_t memory_margin = 0;  ///< bytes, on every device
};

struct Answer {
  bool complete = false;               ///< the whole lattice was searched: no plan is better than `value`
  double value = 0;                    ///< s, as Measure has it
  std::vector<plan::StageCut> cuts{};  ///< empty: nothing better than the incumbent was found
};

/// Builds plans stage by stage from the first. A state is an ideal, the devices used, and the stages to come where
/// memory or the problem counts them; of the partial plans of a state those are kept that no other makes needless. A
/// partial plan is dropped when it is no better than the incumbent with all further work spread over all further
/// devices without loss.
class Search {
 public:
  /// All must outlive it.
  Search(const plan::Problem& problem, const Lattice& lattice, Stages& stages, const Limits& limits);

  /// The best plan below `incumbent`, a value as Measure has it.
  Answer run(double incumbent);

 private:
  struct State {  // a partial plan
    std::int32_t ideal = 0;
    std::int32_t before = -1;  // the state that its last stage was added to
    std::int32_t makers = 0;   // of live tensors, where links differ
    std::int16_t devices = 0;  // used so far
    std::int16_t left = 0;     // stages to come; 0: not counted
  };
  struct Growing {  // a stage from the ideal at hand
    std::int32_t ideal = 0;
    std::vector<TensorId> received;
  };
  struct Team {  // where it would go
    Group group{};
    std::int64_t reduced_bytes = 0;
    std::vector<Stages::Compute> costs{};  // by kind; transfers included where links are uniform
  };
  struct Front {
    std::vector<std::int32_t> states{};
    std::vector<Figures> least{};  // by kind: of all states, in each figure
  };

  void start();
  void expand(int inner);
  void extend(int inner, const Growing& stage);
  void price(int inner, const Growing& stage, Team& team);
  void offer(std::int32_t before, const Growing& stage, const Team& team);
  void keep(const State& state, std::span<const Figures> figures);
  bool hopeless(const Front& front, int inner, int outer, Group group);
  void receive(int inner, const Lattice::Cover& cover, Growing& stage, int grown_from) const;
  double transfer(std::size_t kind, const State& before, const Growing& stage, Group group);
  std::vector<double> most_work(int inner) const;
  double rest(std::size_t kind, int ideal, int devices) const;  // seconds that all further stages take at least
  double at_least(std::span<const Figures> figures, int ideal, int devices) const;
  std::int32_t add(const State& state, std::span<const Figures> figures);
  bool stop();
  std::vector<plan::StageCut> trace(std::int32_t state) const;

  std::span<const Figures> figures(std::int32_t state) const {
    return {figures_.data() + static_cast<std::size_t>(state) * stages_.kinds(), stages_.kinds()};
  }

  const plan::Problem& problem_;
  const Lattice& lattice_;
  Stages& stages_;
  Limits limits_;
  Measure measure_;
  const plan::ScheduleTraits& traits_;
  Makers makers_;
  bool uniform_ = true;       // links, in all kinds of pipelines
  bool same_pattern_ = true;  // of links, in all kinds
  bool counts_stages_ = false;
  double limit_ = 0;  // value of the best plan so far
  double slack_ = 0;  // differences below it are rounding
  std::int32_t best_ = -1;
  bool stopped_ = false;
  std::int64_t steps_ = 0;
  std::vector<State> states_;
  std::vector<Figures> figures_;                              // [state][kind]
  std::vector<std::map<std::pair<int, int>, Front>> fronts_;  // by ideal; devices and stages to come
  std::vector<std::int32_t> seen_;                            // by ideal: the ideal that was last expanded to it
  std::vector<Figures> scratch_;
};

}  // namespace millrace::partitioners::ideals
