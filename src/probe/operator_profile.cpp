// Runs the network again and again, with a stopwatch between its kernels.
#include "probe/operator_profile.h"

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "probe/network_sample.h"
#include "probe/statistics.h"

namespace millrace::probe {
namespace {

using Clock = std::chrono::steady_clock;
using Values = std::vector<double>;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Of each operator and pass of one run; a device that computes sample by sample tells of a kernel several times.
class Stopwatch final : public kernels::KernelObserver {
 public:
  explicit Stopwatch(const Graph& graph) : times_(static_cast<std::size_t>(graph.size())) {}

  void start() { last_ = Clock::now(); }
  void ran(OpId op, kernels::Pass pass) override {
    const Clock::time_point now = Clock::now();
    times_[static_cast<std::size_t>(op)][static_cast<std::size_t>(pass)] +=
        std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  double take(std::size_t op, kernels::Pass pass) {
    return std::exchange(times_[op][static_cast<std::size_t>(pass)], 0.0);
  }

 private:
  Clock::time_point last_{};
  std::vector<std::array<double, 3>> times_;
};

struct Repetitions {
  Values forward, backward;
  std::vector<std::array<Values, 3>> passes;  // by operator
};

cost::MeasuredSize summed_up(const Repetitions& all, std::int64_t rows, const kernels::ExecutableBytes& bytes) {
  cost::MeasuredSize size;
  size.rows = rows;
  size.repetitions = static_cast<std::int64_t>(all.forward.size());
  size.forward = summary(all.forward);
  size.backward = summary(all.backward);
  size.slot = Bytes(bytes.per_slot);
  size.workspace = Bytes(bytes.workspace);
  for (const auto& [forward, backward_input, backward_weight] : all.passes) {
    size.operators.push_back({summary(forward), summary(backward_input), summary(backward_weight)});
  }
  return size;
}

cost::MeasuredSize measure(const Graph& graph, NetworkSample& sample, std::int64_t rows,
                           const ProfileOptions& options) {
  sample.compile(rows);
  Stopwatch watch(graph);
  sample.observe(&watch);
  Repetitions all;
  all.passes.resize(static_cast<std::size_t>(graph.size()));
  constexpr std::array kPasses{kernels::Pass::forward, kernels::Pass::backward_input, kernels::Pass::backward_weight};
  const auto run = [&](bool counts) {
    Clock::time_point start = Clock::now();
    watch.start();
    sample.forward();
    const double forward = since(start);
    start = Clock::now();
    watch.start();
    sample.backward();
    const double backward = since(start);
    for (std::size_t op = 0; op < all.passes.size(); ++op) {
      for (std::size_t pass = 0; pass < kPasses.size(); ++pass) {
        const double time = watch.take(op, kPasses[pass]);
        if (counts) all.passes[op][pass].push_back(time);
      }
    }
    if (!counts) return;
    all.forward.push_back(forward);
    all.backward.push_back(backward);
  };
  if (options.together) options.together();
  run(false);
  const Clock::time_point begun = Clock::now();
  for (int i = 0; i < options.most_repetitions; ++i) {
    if (i >= options.least_repetitions && since(begun) > options.time_of_size.value()) break;
    run(true);
  }
  sample.observe(nullptr);
  return summed_up(all, rows, sample.bytes());
}

// Each tensor belongs to the first operator that uses it.
std::vector<cost::MeasuredOperator> measure_steps(const Graph& graph, NetworkSample& sample,
                                                  const ProfileOptions& options, const MakeStep& make_step) {
  kernels::StageParameters& parameters = sample.parameters();
  const std::span<const TensorId> order = parameters.order();
  std::vector<std::vector<std::size_t>> positions(static_cast<std::size_t>(graph.size()));
  for (std::size_t i = 0; i < order.size(); ++i) {
    positions[static_cast<std::size_t>(graph.consumers(order[i]).front())].push_back(i);
  }
  std::vector<Values> times(positions.size());
  const Step step = make_step(parameters);
  if (options.together) options.together();
  const Clock::time_point begun = Clock::now();
  // The whole network each time, so that weights come from where they come from in training; the first warms up.
  for (int i = -1; i < options.most_repetitions; ++i) {
    if (i >= options.least_repetitions && since(begun) > options.time_of_size.value()) break;
    for (std::size_t op = 0; op < positions.size(); ++op) {
      const Clock::time_point start = Clock::now();
      for (const std::size_t position : positions[op]) step(position);
      if (i >= 0) times[op].push_back(positions[op].empty() ? 0.0 : since(start));
    }
  }
  std::vector<cost::MeasuredOperator> measured;
  for (std::size_t op = 0; op < positions.size(); ++op) {
    std::int64_t elements = 0;
    for (const std::size_t position : positions[op]) elements += parameters.range_elements(position, 1);
    measured.push_back({graph.op(static_cast<OpId>(op)).name,
                        Bytes(elements * kernels::real_bytes(parameters.precision())), summary(times[op])});
  }
  return measured;
}

}  // namespace

cost::Profile profile_operators(const Graph& graph, kernels::Device& device, const ProfileOptions& options,
                                const MakeStep& make_step) {
  cost::Profile profile;
  profile.model = graph.name();
  profile.graph_digest = graph.digest();
  profile.kernels = std::string(device.name());
  profile.precision = kernels::name(options.precision);
  NetworkSample sample(graph, device, options.precision, options.seed, options.stages);
  for (const std::int64_t rows : options.rows) profile.sizes.push_back(measure(graph, sample, rows, options));
  profile.operators = measure_steps(graph, sample, options, make_step);
  return profile;
}

}  // namespace millrace::probe
