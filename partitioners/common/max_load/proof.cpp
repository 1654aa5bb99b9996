// First the whole question; then, while there is time, loads between what is proven and what is known.
#include "partitioners/common/max_load/proof.h"

#include <algorithm>
#include <limits>

#include "base/limits.h"
#include "partitioners/common/max_load/chain_search.h"
#include "partitioners/common/max_load/reduce.h"

namespace millrace::partitioners::max_load {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSame = 1e-10;   // relative: loads that differ less are one, sums being rounded
constexpr double kNarrow = 1e-3;  // relative distance of bound and load below which smaller loads are not worth a try

class Prover {
 public:
  Prover(const Model& model, const Parts& known, double bound, const Effort& effort)
      : model_(model), deadline_(effort.deadline), steps_(effort.steps) {
    proof_.chain = known;
    proof_.load = known.empty() ? kNever : max_load(model, known);
    proof_.bound = bound;
  }

  Proof run() {
    // A quarter of the time for the question as it is, the same for smaller loads, and the rest for the question again.
    if (ask_for_better(share(4))) return finished();
    smaller_loads(share(3));
    ask_for_better(deadline_);
    return finished();
  }

 private:
  Proof finished() {
    proof_.bound = std::min(proof_.bound, proof_.load);
    proof_.late = !proof_.complete();
    return proof_;
  }

  Clock::time_point share(int parts) const {
    const auto now = Clock::now();
    return now < deadline_ ? now + (deadline_ - now) / parts : deadline_;
  }

  // Whether it is known in the end that there is nothing better.
  bool ask_for_better(Clock::time_point until) {
    while (!proof_.complete()) {
      const Verdict verdict = ask(proof_.load == kNever ? kNever : proof_.load * (1 - kSame), until);
      if (verdict == Verdict::stopped) return false;
      if (verdict == Verdict::none) proof_.bound = proof_.load;
      if (proof_.load == kNever) return true;  // nothing fits
    }
    return true;
  }

  void smaller_loads(Clock::time_point until) {
    if (proof_.load == kNever) return;
    double high = proof_.load;
    while (Clock::now() < until && high > proof_.bound * (1 + kNarrow)) {
      const double middle = (high + proof_.bound) / 2;
      const auto now = Clock::now();
      const Verdict verdict = ask(middle, now + (until - now) / 4);
      if (verdict == Verdict::none) proof_.bound = middle;
      high = verdict == Verdict::stopped ? middle : std::min(high, proof_.load);
    }
  }

  Verdict ask(double threshold, Clock::time_point until) {
    const Model small = reduced(model_, threshold);
    ChainSearch search(small, threshold, {.deadline = until, .steps = steps_});
    const Verdict verdict = search.run();
    if (verdict != Verdict::found) return verdict;
    Parts chain = placed(model_, small, search.chain());
    const double load = max_load(model_, chain);
    if (load < proof_.load) {
      proof_.load = load;
      proof_.chain = std::move(chain);
    }
    return verdict;
  }

  const Model& model_;
  Clock::time_point deadline_;
  std::uint64_t steps_;
  Proof proof_;
};

}  // namespace

bool Proof::complete() const { return bound >= load * (1 - kSame); }

Proof prove(const Model& model, const Parts& known, double bound, const Effort& effort) {
  return Prover(model, known, bound, effort).run();
}

}  // namespace millrace::partitioners::max_load
