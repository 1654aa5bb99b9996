// Sums figures over the operators of each ideal once; a stage is then a difference.
#include "partitioners/common/ideals/stages.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "graph/footprint.h"
#include "plan/device_kinds.h"
#include "plan/rows.h"

namespace millrace::partitioners::ideals {

Stages::Stages(const plan::Problem& problem, int pipelines, const Lattice& lattice)
    : problem_(problem),
      lattice_(lattice),
      pipelines_(pipelines),
      devices_(problem.devices_per_pipeline(pipelines)),
      same_device_(plan::first_alike(*problem.cluster)),
      speeds_(plan::device_speeds(problem)),
      reductions_(static_cast<std::size_t>(devices_) * static_cast<std::size_t>(devices_)),
      bytes_(*problem.graph, problem.sizes) {
  for (int device = 0; device < problem.cluster->size(); ++device) {
    limited_ = limited_ || problem.memory_of(device).has_value();
  }
  find_kinds(pipelines);
  for (Kind& kind : kinds_) {
    measure_work(kind);
    measure_messages(kind);
  }
  find_parameters(pipelines);
}

void Stages::find_kinds(int pipelines) {
  const std::vector<double> shares(static_cast<std::size_t>(pipelines), 1.0 / pipelines);
  const std::vector<std::int64_t> batches = largest_remainder(problem_.batch, shares);
  for (int p = 0; p < pipelines; ++p) {
    Kind kind;
    kind.first = p * devices_;
    kind.rows = (batches[static_cast<std::size_t>(p)] + problem_.micro_batches - 1) / problem_.micro_batches;
    kind.links = Links(problem_, kind.first, devices_);
    const auto same = [&](const Kind& other) {
      const auto of = [&](int first) { return same_device_.begin() + first; };
      return other.rows == kind.rows && std::equal(of(kind.first), of(kind.first + devices_), of(other.first)) &&
             other.links.same_pattern(kind.links);
    };
    if (std::any_of(kinds_.begin(), kinds_.end(), same)) continue;
    kind.teams.resize(static_cast<std::size_t>(devices_) * static_cast<std::size_t>(devices_));
    kinds_.push_back(std::move(kind));
  }
}

template <class Gain>
std::vector<double> Stages::sums(const Gain& gain) const {
  std::vector<double> sums(static_cast<std::size_t>(lattice_.size()), 0.0);
  std::vector<bool> known(sums.size(), false);
  for (int ideal = 0; ideal < lattice_.size(); ++ideal) {
    for (const Lattice::Cover& cover : lattice_.covers(ideal)) {
      const auto at = static_cast<std::size_t>(cover.ideal);
      if (known[at]) continue;
      sums[at] = sums[static_cast<std::size_t>(ideal)] + gain(cover.op, cover.ideal);
      known[at] = true;
    }
  }
  return sums;
}

// As plan/time_bound.cpp: each operator on the device that is best for it, each device with its best speed.
void Stages::measure_work(Kind& kind) const {
  std::vector<int> makes;
  for (int device = kind.first; device < kind.first + devices_; ++device) {
    const int make = same_device_[static_cast<std::size_t>(device)];
    if (std::find(makes.begin(), makes.end(), make) == makes.end()) makes.push_back(make);
  }
  std::vector<double> speeds(makes.size(), 0.0), times(makes.size());
  std::vector<double> work;
  for (OpId op = 0; op < problem_.graph->size(); ++op) {
    for (std::size_t i = 0; i < makes.size(); ++i) {
      times[i] = problem_.cost->op_time(op, kind.rows, makes[i]).total().value();
    }
    const double fastest = *std::min_element(times.begin(), times.end());
    for (std::size_t i = 0; i < makes.size(); ++i) {
      speeds[i] = std::max(speeds[i], times[i] > 0 ? fastest / times[i] : 1.0);
    }
    work.push_back(fastest);
  }
  kind.work = sums([&](OpId op, int) { return work[static_cast<std::size_t>(op)]; });
  kind.speed_from.assign(static_cast<std::size_t>(devices_) + 1, 0.0);
  for (int device = devices_ - 1; device >= 0; --device) {
    const int make = same_device_[static_cast<std::size_t>(kind.first + device)];
    const auto at = std::find(makes.begin(), makes.end(), make) - makes.begin();
    kind.speed_from[static_cast<std::size_t>(device)] =
        kind.speed_from[static_cast<std::size_t>(device) + 1] + speeds[static_cast<std::size_t>(at)];
  }
}

// A message to r replicas counts as work of r times its length on each, on devices of the least speed: the fewest over
// r.
void Stages::measure_messages(Kind& kind) const {
  kind.messages.assign(static_cast<std::size_t>(lattice_.size()), 0.0);
  if (devices_ < 2) return;
  double slowest = kind.speed_from[0];
  for (std::size_t d = 0; d + 1 < kind.speed_from.size(); ++d) {
    slowest = std::min(slowest, kind.speed_from[d] - kind.speed_from[d + 1]);
  }
  const Graph& graph = *problem_.graph;
  std::vector<double> work(graph.tensors().size(), 0.0);
  for (int replicas = 1; replicas < devices_; ++replicas) {
    const std::vector<double> seconds = kind.links.fastest((kind.rows + replicas - 1) / replicas);
    for (std::size_t id = 0; id < work.size(); ++id) {
      const double both_ways = 2 * replicas * slowest * seconds[id];
      work[id] = replicas == 1 ? both_ways : std::min(work[id], both_ways);
    }
  }
  kind.messages = sums([&](OpId op, int with_it) {
    double gain = 0;
    for (const TensorId output : graph.op(op).outputs) {
      if (!graph.consumers(output).empty()) gain += work[static_cast<std::size_t>(output)];
    }
    std::vector<TensorId> inputs = graph.op(op).inputs;
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const TensorId input : inputs) {
      if (graph.tensor(input).producer < 0) continue;
      const auto readers = graph.consumers(input);
      const auto inside = [&](OpId reader) { return lattice_.contains(with_it, reader); };
      if (std::all_of(readers.begin(), readers.end(), inside)) gain -= work[static_cast<std::size_t>(input)];
    }
    return gain;
  });
}

void Stages::find_parameters(int pipelines) {
  const Graph& graph = *problem_.graph;
  std::vector<double> own(static_cast<std::size_t>(graph.size()), 0.0);
  for (const auto ids : {graph.parameters(), graph.buffers()}) {
    for (const TensorId id : ids) {
      const auto users = graph.consumers(id);
      const std::int64_t bytes = tensor_bytes(graph.tensor(id), problem_.sizes.real).value();
      if (users.empty() || bytes == 0) continue;
      reduces_ = reduces_ || devices_ * pipelines > 1;
      all_bytes_ += bytes;
      if (users.size() == 1) {
        own[static_cast<std::size_t>(users[0])] += static_cast<double>(bytes);
      } else {
        tied_.push_back({{users.begin(), users.end()}, bytes});
      }
    }
  }
  parameter_bytes_ = sums([&](OpId op, int) { return own[static_cast<std::size_t>(op)]; });
  largest_reductions_.assign(static_cast<std::size_t>(devices_), -1.0);
}

std::size_t Stages::profile(int device, std::int64_t rows) {
  const int make = same_device_[static_cast<std::size_t>(device)];
  for (std::size_t i = 0; i < profiles_.size(); ++i) {
    if (profiles_[i].device == make && profiles_[i].rows == rows) return i;
  }
  const auto time = [&](OpId op) { return problem_.cost->op_time(op, rows, make); };
  profiles_.push_back({make, rows, sums([&](OpId op, int) { return time(op).forward.value(); }),
                       sums([&](OpId op, int) { return time(op).total().value(); })});
  return profiles_.size() - 1;
}

const Stages::Team& Stages::team(std::size_t kind, int first, int replicas) {
  Kind& pipeline = kinds_[kind];
  auto& slot = pipeline.teams[static_cast<std::size_t>(first * devices_ + replicas - 1)];
  if (slot) return *slot;
  slot = std::make_unique<Team>();
  // The same arithmetic as plan::assign, so that the rows are the same to the last one.
  const auto begin = speeds_.begin() + pipeline.first + first;
  std::vector<double> shares(begin, begin + replicas);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  const std::vector<std::int64_t> rows = largest_remainder(pipeline.rows, shares);
  for (int r = 0; r < replicas; ++r) {
    const std::int64_t count = rows[static_cast<std::size_t>(r)];
    const int device = pipeline.first + first + r;
    const std::size_t used = profile(device, count);
    if (std::find(slot->profiles.begin(), slot->profiles.end(), used) == slot->profiles.end()) {
      slot->profiles.push_back(used);
    }
    slot->most_rows = std::max(slot->most_rows, count);
    if (const auto limit = problem_.memory_of(device)) {
      const Room room{count, limit->value()};
      if (std::find(slot->rooms.begin(), slot->rooms.end(), room) == slot->rooms.end()) slot->rooms.push_back(room);
    }
  }
  return *slot;
}

Stages::Compute Stages::compute(std::size_t kind, int first, int replicas, int inner, int outer) {
  double slowest = -1, forward = 0;
  const auto from = static_cast<std::size_t>(inner), to = static_cast<std::size_t>(outer);
  for (const std::size_t used : team(kind, first, replicas).profiles) {
    const Profile& profile = profiles_[used];
    const double total = profile.total[to] - profile.total[from];
    if (total <= slowest) continue;
    slowest = total;
    forward = profile.forward[to] - profile.forward[from];
  }
  return {forward, slowest - forward};
}

std::int64_t Stages::own_bytes(int inner, int outer) const {
  std::int64_t bytes = std::llround(parameter_bytes_[static_cast<std::size_t>(outer)] -
                                    parameter_bytes_[static_cast<std::size_t>(inner)]);
  for (const Tied& tied : tied_) {
    const auto inside = [&](OpId op) { return lattice_.contains(outer, op) && !lattice_.contains(inner, op); };
    if (std::all_of(tied.users.begin(), tied.users.end(), inside)) bytes += tied.bytes;
  }
  return bytes;
}

double Stages::reduction(int first, int replicas, std::int64_t bytes) {
  if (bytes == 0 || pipelines_ * replicas < 2) return 0;
  auto& known = reductions_[static_cast<std::size_t>(first * devices_ + replicas - 1)];
  const auto [at, made] = known.try_emplace(bytes, 0.0);
  if (!made) return at->second;
  std::vector<int> owners;
  for (int p = 0; p < pipelines_; ++p) {
    for (int r = 0; r < replicas; ++r) owners.push_back(p * devices_ + first + r);
  }
  return at->second = problem_.cost->all_reduce_time(Bytes(bytes), owners).value();
}

// That of all parameters: time does not fall as bytes grow.
double Stages::largest_reduction(int ideal, int first) {
  if (!reduces_ || first >= devices_) return 0;
  if (tied_.empty() && parameter_bytes_[static_cast<std::size_t>(ideal)] == parameter_bytes_.back()) return 0;
  double& largest = largest_reductions_[static_cast<std::size_t>(first)];
  if (largest >= 0) return largest;
  for (int from = first; from < devices_; ++from) {
    for (int replicas = 1; from + replicas <= devices_; ++replicas) {
      largest = std::max(largest, reduction(from, replicas, all_bytes_));
    }
  }
  return largest;
}

const RowFootprint& Stages::footprint(int inner, int outer) {
  const std::uint64_t key = (static_cast<std::uint64_t>(inner) << 32) | static_cast<std::uint64_t>(outer);
  const auto [at, made] = footprints_.try_emplace(key);
  if (made) at->second = row_footprint(bytes_, lattice_.between(inner, outer));
  return at->second;
}

bool Stages::fits(int first, int replicas, int inner, int outer, std::int64_t live, std::int64_t margin) {
  const RowFootprint& footprint = this->footprint(inner, outer);
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    for (const Room& room : team(kind, first, replicas).rooms) {
      if (footprint.bytes(room.rows, live) + margin > room.bytes) return false;
    }
  }
  return true;
}

}  // namespace millrace::partitioners::ideals
