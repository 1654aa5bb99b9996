// `millrace profile`: measures every operator of the experiment's network on this machine, and keeps the times for
// `costs:`.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/measured_costs.h"
#include "app/output_file.h"
#include "app/print.h"
#include "app/profile_text.h"
#include "app/run_facts.h"
#include "app/session.h"
#include "base/count.h"
#include "base/log.h"
#include "base/text.h"
#include "kernels/variants.h"
#include "record/profile_file.h"

namespace millrace::app {
namespace {

constexpr Seconds kTimeOfSize{0.25};

// Costs that this command is to make are not there yet.
Arguments without_costs(Arguments arguments) {
  arguments.sets.emplace_back("costs=analytic");
  return arguments;
}

std::string with_spread(const cost::Measured& measured) {
  if (measured == cost::Measured{}) return "-";
  return fmt::format("{} ({:.0f} %)", format(measured.median),
                     measured.median > Seconds(0) ? measured.spread / measured.median * 100 : 0.0);
}

// Where there was a choice between implementations.
void print_variants(const kernels::Variants& variants) {
  planner::Table choices{{"work", "variant", "processor time"}, {}};
  for (const auto& [work, choice] : variants.used()) {
    std::vector<std::string> times;
    for (const auto& [variant, seconds] : choice.times) {
      times.push_back(fmt::format("{} {}", variant, format(Seconds(seconds))));
    }
    choices.rows.push_back({work, choice.variant, join(times)});
  }
  if (!choices.rows.empty()) print("\nvariants of kernels\n" + table_text(choices));
}

void print_profile(const Session& session, const cost::Profile& profile) {
  print(fmt::format("{} on {}, {}, kernels {} in {}\n\n", profile.model, profile.cpu,
                    counted(profile.threads, "thread"), profile.kernels, profile.precision));
  const cost::MeasuredSize& largest = profile.sizes.back();
  planner::Table operators{{"operator", "kind", "forward", "backward input", "backward weight", "update"}, {}};
  for (std::size_t op = 0; op < profile.operators.size(); ++op) {
    const cost::MeasuredPasses& passes = largest.operators[op];
    operators.rows.push_back({profile.operators[op].name,
                              std::string(session.graph.op(static_cast<OpId>(op)).schema->name),
                              with_spread(passes.forward), with_spread(passes.backward_input),
                              with_spread(passes.backward_weight), with_spread(profile.operators[op].update)});
  }
  print(fmt::format("one micro-batch of {}, median (distance between the quartiles)\n", counted(largest.rows, "row")) +
        table_text(operators) + "\n");
  planner::Table sizes{{"rows", "forward", "backward", "samples/s", "activations", "workspace", "repetitions"}, {}};
  for (const cost::MeasuredSize& size : profile.sizes) {
    const Seconds both = size.forward.median + size.backward.median;
    sizes.rows.push_back({std::to_string(size.rows), with_spread(size.forward), with_spread(size.backward),
                          fmt::format("{:.0f}", static_cast<double>(size.rows) / both.value()), format(size.slot),
                          format(size.workspace), std::to_string(size.repetitions)});
  }
  print("the whole network\n" + table_text(sizes));
  print_variants(*session.experiment.train.variants);
  if (profile.job.speeds.empty()) return;
  std::vector<std::string> speeds;
  for (const double speed : profile.job.speeds) speeds.push_back(fmt::format("{:.2f}", speed));
  print(fmt::format("\nspeeds of the ranks: {}\n", join(speeds)));
  const auto show = [](const char* what, const std::optional<cluster::Link>& link) {
    if (link) print(fmt::format("{}: {:.2f} GB/s, {}\n", what, link->bandwidth.value() / 1e9, format(link->latency)));
  };
  show("between ranks of a host", profile.job.within);
  show("between hosts", profile.job.between);
}

}  // namespace

ExitCode profile(const Arguments& given, comm::World& world) {
  const Arguments arguments = without_costs(given);
  const int ranks = world.size() > 1 ? world.size() : arguments.ranks.value_or(1);
  const Session session = open_session(arguments, world, ranks);
  world.on_root_then_all([&] {
    if (arguments.output) storage::check_target(*arguments.output, existing(arguments));
    return std::string();
  });
  std::vector<std::int64_t> rows = arguments.rows.empty() ? rows_to_measure(session) : arguments.rows;
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const cost::Profile measured = measure_profile(session, rows, kTimeOfSize, world);
  world.on_root_then_all([&] {
    if (arguments.format == Format::json) {
      print(profile_json(measured));
    } else {
      print_profile(session, measured);
    }
    if (arguments.output) {
      const std::string command = "millrace profile " + arguments.files.front();
      record::write_profile(*arguments.output, existing(arguments), measured, origin_facts(world, command));
      log::notice(fmt::format("wrote {}; costs: {} takes it", *arguments.output, *arguments.output));
    }
    return std::string();
  });
  return ExitCode::done;
}

}  // namespace millrace::app
