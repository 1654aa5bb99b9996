// The mask of dropout: which elements of a sample are kept, whatever part of the sample a kernel has.
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "base/random.h"
#include "graph/graph.h"
#include "kernels/op_kernel.h"

namespace millrace::kernels::reference {

/// A function of (seed, operator name, step, sample id, element), so that backward makes it again.
struct DropoutMask {
  DropoutMask(const Operator& op, std::uint64_t of_run)
      : probability(op.attributes.real("probability")), seed(of_run), name(hash64(op.name)) {}

  /// Kept elements are scaled by 1 / (1 − p), so that the expectation stays. `from` and `to` hold for each row what
  /// `each_run` names of a sample: it calls its argument with the first element and the length of each run.
  template <class T, class Runs>
  void apply(const OpCall& call, const T* from, T* to, Runs each_run) const {
    const T scale = static_cast<T>(1 / (1 - probability));
    for (std::int64_t n = 0; n < call.rows; ++n) {
      const Random random(seed, name, static_cast<std::uint64_t>(call.step),
                          static_cast<std::uint64_t>(call.samples[static_cast<std::size_t>(n)]));
      each_run([&](std::int64_t begin, std::int64_t count) {
        for (std::int64_t i = begin; i < begin + count; ++i, ++from, ++to) {
          *to = random.uniform(static_cast<std::uint64_t>(i)) >= probability ? *from * scale : T{0};
        }
      });
    }
  }

  double probability;
  std::uint64_t seed, name;
};

}  // namespace millrace::kernels::reference
