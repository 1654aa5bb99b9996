// Holds a profile against the graph and the machine that it is wanted for.
#include "cost/profile.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/count.h"

namespace millrace::cost {

std::string why_not_usable(const Profile& profile, const Graph& graph, const ProfileUse& use) {
  for (const Operator& op : graph.operators()) {
    const auto found = std::find_if(profile.operators.begin(), profile.operators.end(),
                                    [&](const MeasuredOperator& measured) { return measured.name == op.name; });
    if (found == profile.operators.end()) {
      return fmt::format("operator '{}' of model {} is not in it: it was measured for {}", op.name, graph.name(),
                         profile.model);
    }
  }
  if (profile.graph_digest != graph.digest()) {
    return fmt::format("it was measured for {} with other shapes or operators than model {} has now", profile.model,
                       graph.name());
  }
  if (profile.precision != use.precision) {
    return fmt::format("it was measured in {}, train.precision is {}", profile.precision, use.precision);
  }
  if (profile.kernels != use.kernels) {
    return fmt::format("it was measured with kernels {}, this experiment uses {}", profile.kernels, use.kernels);
  }
  if (!use.cpu.empty() && profile.cpu != use.cpu) {
    return fmt::format("it was measured on another processor ({}; this one is {})", profile.cpu, use.cpu);
  }
  if (use.threads > 0 && profile.threads != use.threads) {
    return fmt::format("it was measured with {} a rank, here a rank has {}", counted(profile.threads, "thread"),
                       use.threads);
  }
  return "";
}

}  // namespace millrace::cost
