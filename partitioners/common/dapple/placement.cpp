// Two servers: every division. More: one server alone, or few servers from the fullest or the emptiest on.
#include "partitioners/common/dapple/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "plan/published/dapple.h"

namespace millrace::partitioners {
namespace {

// Takes from servers in the given sequence.
std::vector<int> taken_in_turn(const std::vector<int>& left, const std::vector<std::size_t>& sequence, int missing) {
  std::vector<int> counts(left.size(), 0);
  for (const std::size_t server : sequence) {
    counts[server] = std::min(left[server], missing);
    missing -= counts[server];
  }
  return counts;
}

}  // namespace

Servers::Servers(std::vector<int> capacities)
    : capacities_(std::move(capacities)), largest_(*std::max_element(capacities_.begin(), capacities_.end())) {}

Servers Servers::at_best(const std::vector<int>& capacities) {
  Servers servers(capacities);
  servers.at_best_ = true;
  if (!servers.complete()) servers.capacities_ = {std::accumulate(capacities.begin(), capacities.end(), 0)};
  return servers;
}

StagePlacement Servers::placed(std::vector<int> counts, int replicas, int pipelines) const {
  StagePlacement placement{.replicas = replicas, .counts = std::move(counts), .server_of = {}};
  placement.spans = *std::max_element(placement.counts.begin(), placement.counts.end()) < replicas * pipelines ||
                    replicas * pipelines > largest_;
  if (at_best_) {
    const auto fullest = std::max_element(placement.counts.begin(), placement.counts.end());
    const bool one = capacities_.size() == 1 ? replicas <= largest_ : !placement.spans;
    placement.server_of = {one ? static_cast<int>(fullest - placement.counts.begin()) : plan::kSpansServers};
    return placement;
  }
  std::size_t server = 0;
  int taken = 0;  // of the devices on `server`
  for (int pipeline = 0; pipeline < pipelines; ++pipeline) {
    while (taken == placement.counts[server]) {
      ++server;
      taken = 0;
    }
    const bool alone = placement.counts[server] - taken >= replicas;
    placement.server_of.push_back(alone ? static_cast<int>(server) : plan::kSpansServers);
    for (int device = 0; device < replicas; ++device) {
      while (taken == placement.counts[server]) {
        ++server;
        taken = 0;
      }
      ++taken;
    }
  }
  return placement;
}

void Servers::enumerate(const std::vector<int>& left, int missing, std::vector<int>& counts,
                        std::vector<std::vector<int>>& all) const {
  const std::size_t server = counts.size();
  if (server + 1 == left.size()) {
    if (missing > left[server]) return;
    counts.push_back(missing);
    all.push_back(counts);
    counts.pop_back();
    return;
  }
  for (int here = std::min(left[server], missing); here >= 0; --here) {
    counts.push_back(here);
    enumerate(left, missing - here, counts, all);
    counts.pop_back();
  }
}

std::vector<StagePlacement> Servers::placements(const std::vector<int>& left, int replicas, int pipelines) const {
  const int devices = replicas * pipelines;
  std::vector<std::vector<int>> all;
  if (complete()) {
    std::vector<int> counts;
    enumerate(left, devices, counts, all);
    // Equal servers that nothing uses yet: their exchange changes nothing.
    const bool alike = left == capacities_ && left.front() == left.back();
    std::erase_if(all, [&](const std::vector<int>& of) { return alike && of.front() < of.back(); });
  } else if (devices <= std::accumulate(left.begin(), left.end(), 0)) {
    std::vector<std::size_t> sequence(left.size());
    std::iota(sequence.begin(), sequence.end(), std::size_t{0});
    for (const std::size_t server : sequence) {
      if (left[server] < devices) continue;
      all.push_back(taken_in_turn(left, {server}, devices));
    }
    all.push_back(taken_in_turn(left, sequence, devices));
    std::stable_sort(sequence.begin(), sequence.end(), [&](std::size_t a, std::size_t b) { return left[a] > left[b]; });
    all.push_back(taken_in_turn(left, sequence, devices));
    std::reverse(sequence.begin(), sequence.end());
    all.push_back(taken_in_turn(left, sequence, devices));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  std::vector<StagePlacement> placements;
  for (std::vector<int>& counts : all) placements.push_back(placed(std::move(counts), replicas, pipelines));
  return placements;
}

double Servers::bandwidth(const StagePlacement& from, const StagePlacement& to) const {
  if (at_best_ && capacities_.size() > 1) {
    // A spanning stage after one that spans may have every pipeline inside a server. After one that does not, some
    // pipeline has to leave its server; with more than one replica it can span.
    const bool both = from.spans && to.spans;
    if (both && to.replicas <= largest_) return plan::kDappleWithinServer;
    if (!from.spans && to.spans && to.replicas == 1) return plan::kDappleBetweenServers;
  }
  double slowest = std::numeric_limits<double>::infinity();
  for (std::size_t p = 0; p < from.server_of.size(); ++p) {
    slowest = std::min(slowest, plan::dapple_bandwidth(from.server_of[p], to.server_of[p]));
  }
  return slowest;
}

}  // namespace millrace::partitioners
