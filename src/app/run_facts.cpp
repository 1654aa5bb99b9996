// From rows and reports to named figures.
#include "app/run_facts.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "app/costs_facts.h"
#include "app/version.h"
#include "base/limits.h"
#include "cluster/cluster_file.h"
#include "config/emit.h"

namespace millrace::app {
namespace {

double relative_error(double predicted, double measured) { return measured > 0 ? predicted / measured - 1.0 : 0.0; }

}  // namespace

RunFigures measured_figures(const Session& session, const runtime::Outcome& outcome,
                            const std::vector<record::RankRow>& ranks) {
  RunFigures figures;
  figures.iteration_time_s = outcome.iteration_time.value();
  if (figures.iteration_time_s > 0) {
    figures.throughput_samples_per_s = static_cast<double>(session.experiment.data.batch) / figures.iteration_time_s;
  }
  double busy = 0, idle = 0;
  for (const record::RankRow& row : ranks) {
    figures.peak_memory_bytes = std::max(figures.peak_memory_bytes, row.report.peak_bytes());
    figures.mean_memory_bytes += row.report.peak_bytes() / static_cast<std::int64_t>(ranks.size());
    figures.peak_rss_bytes = std::max(figures.peak_rss_bytes, row.report.peak_rss_bytes);
    busy += row.report.busy.value();
    idle += row.report.idle.value();
  }
  if (figures.peak_memory_bytes > 0) {
    figures.memory_efficiency =
        figures.throughput_samples_per_s / (static_cast<double>(figures.peak_memory_bytes) / kGiB);
  }
  if (busy + idle > 0) figures.bubble_fraction = idle / (busy + idle);
  return figures;
}

std::vector<record::Fact> summary_facts(const RunFigures& figures, const runtime::Outcome& outcome) {
  std::vector<record::Fact> facts{
      {"iteration_time_s", figures.iteration_time_s},   {"throughput_samples_per_s", figures.throughput_samples_per_s},
      {"peak_memory_bytes", figures.peak_memory_bytes}, {"mean_memory_bytes", figures.mean_memory_bytes},
      {"peak_rss_bytes", figures.peak_rss_bytes},       {"memory_efficiency", figures.memory_efficiency},
      {"bubble_fraction", figures.bubble_fraction},     {"final_loss", outcome.final_loss}};
  if (outcome.evaluation) {
    facts.push_back({"test_loss", outcome.evaluation->loss});
    facts.push_back({"test_accuracy", outcome.evaluation->accuracy});
  }
  return facts;
}

std::vector<record::Fact> prediction_facts(const plan::PlanReport& predicted, const RunFigures& measured) {
  return {{"iteration_time_s", predicted.iteration_time_s},
          {"measured_iteration_time_s", measured.iteration_time_s},
          {"iteration_time_error", relative_error(predicted.iteration_time_s, measured.iteration_time_s)},
          {"peak_memory_bytes", predicted.peak_memory_bytes},
          {"measured_peak_memory_bytes", measured.peak_memory_bytes},
          {"peak_memory_error", relative_error(static_cast<double>(predicted.peak_memory_bytes),
                                               static_cast<double>(measured.peak_memory_bytes))}};
}

std::vector<record::Fact> emulated_summary_facts(const RunFigures& figures, const EmulationFacts& emulation) {
  return {{"kind", std::string("emulated")},
          {"iteration_time_s", figures.iteration_time_s},
          {"throughput_samples_per_s", figures.throughput_samples_per_s},
          {"peak_memory_bytes", figures.peak_memory_bytes},
          {"mean_memory_bytes", figures.mean_memory_bytes},
          {"peak_rss_bytes", figures.peak_rss_bytes},
          {"memory_efficiency", figures.memory_efficiency},
          {"bubble_fraction", figures.bubble_fraction},
          {"time_dilation", emulation.time_dilation},
          {"real_iteration_time_s", emulation.real_iteration_time_s},
          {"mean_lateness_s", emulation.mean_lateness_s},
          {"largest_lateness_s", emulation.largest_lateness_s},
          {"disturbed", std::int64_t{emulation.disturbed}}};
}

std::vector<record::Fact> emulated_prediction_facts(const plan::PlanReport& predicted, const RunFigures& emulated) {
  return {{"kind", std::string("emulated")},
          {"iteration_time_s", predicted.iteration_time_s},
          {"emulated_iteration_time_s", emulated.iteration_time_s},
          {"emulation_error", relative_error(predicted.iteration_time_s, emulated.iteration_time_s)},
          {"peak_memory_bytes", predicted.peak_memory_bytes},
          {"emulated_peak_memory_bytes", emulated.peak_memory_bytes}};
}

std::string run_kind(const Session& session) {
  if (session.cluster.emulated()) return "emulated";
  return session.oversubscribed ? "oversubscribed" : "measured";
}

std::vector<record::Fact> origin_facts(const comm::World& world, const std::string& command) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::vector<record::Fact> facts{{"millrace_version", version()},
                                  {"git_commit", std::string(MILLRACE_GIT_COMMIT)},
                                  {"command", command},
                                  {"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))},
                                  {"host", world.host()}};
  if (const char* job = std::getenv("SLURM_JOB_ID")) facts.push_back({"slurm_job", std::string(job)});
  return facts;
}

std::vector<record::Fact> root_facts(const Session& session, const comm::World& world, const std::string& command) {
  std::vector<record::Fact> facts = origin_facts(world, command);
  facts.push_back({"name", session.experiment.name});
  facts.push_back({"seed", static_cast<std::int64_t>(session.experiment.seed)});
  facts.push_back({"ranks", std::int64_t{world.size()}});
  facts.push_back({"devices", std::int64_t{session.cluster.size()}});
  facts.push_back({"kind", run_kind(session)});
  facts.push_back({"costs", costs_source(session)});
  for (const auto& [name, value] : library_versions()) {
    facts.push_back({name == "MPI" ? "mpi_library" : fmt::format("{}_version", name), value});
  }
  return facts;
}

std::string cluster_text(const cluster::Cluster& cluster) {
  using config::Node;
  if (cluster.kind() == cluster::Kind::described) return config::to_yaml(cluster::to_node(cluster));
  Node root = Node::map();
  root.add("name", Node::quote(cluster.name()));
  Node devices = Node::sequence();
  for (int d = 0; d < cluster.size(); ++d) {
    Node device = Node::map();
    device.add("name", Node::quote(cluster.device(d).name));
    device.add("node", Node::quote(cluster.nodes()[static_cast<std::size_t>(cluster.node_of(d))].name));
    device.add("fp32", Node::plain(fmt::format("{} FLOP/s", cluster.device(d).peak("fp32").value())));
    device.add("bandwidth", Node::plain(fmt::format("{} B/s", cluster.device(d).bandwidth.value())));
    device.add("speed", Node::plain(fmt::format("{}", cluster.device(d).speed)));
    devices.items.push_back(std::move(device));
  }
  root.add("devices", std::move(devices));
  return config::to_yaml(root);
}

}  // namespace millrace::app
