// The results file, progress and summary of one run.
#include "app/run_record.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/costs_facts.h"
#include "app/prediction.h"
#include "app/print.h"
#include "app/rank_text.h"
#include "app/run_facts.h"
#include "app/run_resume.h"
#include "base/count.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "plan/plan_text.h"
#include "planner/simulated.h"

namespace millrace::app {
namespace {

record::RunContext context_of(const Session& session, const Chosen& chosen, const comm::World& world,
                              const Arguments& arguments) {
  record::RunContext context;
  std::string command = "millrace " + arguments.command + " " + arguments.files.front();
  for (const std::string& set : arguments.sets) command += " --set " + set;
  context.root = root_facts(session, world, command);
  context.config = session.experiment.effective;
  context.plan = plan::to_yaml(chosen.plan, session.graph);
  context.cluster = cluster_text(session.cluster);
  context.iterations = session.experiment.train.iterations;
  const std::int64_t every = session.experiment.train.evaluate_every;
  context.evaluations = 1 + (every > 0 ? context.iterations / every : 0);
  return context;
}

record::RankRow rank_row(const Session& session, const runtime::Programs& programs, const comm::World& world,
                         const RankReport& report) {
  record::RankRow row;
  row.rank = row.device = world.rank();
  row.host = world.host();
  row.threads = session.threads;
  for (const ProgramStage& stage : programs.train.front().stages) {
    if (std::find(stage.ranks.begin(), stage.ranks.end(), world.rank()) == stage.ranks.end()) continue;
    row.pipeline = stage.ref.pipeline;
    row.stages += (row.stages.empty() ? "" : ",") + std::to_string(stage.ref.stage);
  }
  row.report = report;
  return row;
}

void make_folder(const std::filesystem::path& folder) {
  if (folder.empty()) return;
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw SystemError(fmt::format("output: {}: cannot be made: {}", folder.string(), failure.message()));
}

nlohmann::json figures_json(const RunFigures& f) {
  return {{"iteration_time_s", f.iteration_time_s},   {"throughput_samples_per_s", f.throughput_samples_per_s},
          {"peak_memory_bytes", f.peak_memory_bytes}, {"mean_memory_bytes", f.mean_memory_bytes},
          {"peak_rss_bytes", f.peak_rss_bytes},       {"memory_efficiency", f.memory_efficiency},
          {"bubble_fraction", f.bubble_fraction}};
}

nlohmann::json emulation_json(const EmulationFacts& f) {
  return {{"time_dilation", f.time_dilation},
          {"real_iteration_time_s", f.real_iteration_time_s},
          {"mean_lateness_s", f.mean_lateness_s},
          {"largest_lateness_s", f.largest_lateness_s},
          {"disturbed", f.disturbed}};
}

std::string emulation_text(const EmulationFacts& f) {
  return fmt::format(
      "emulated: nothing was computed, every kernel and message took its modelled time\n"
      "{} of real time for each second of the model; iteration by the real clock {}; deadlines were met {} late "
      "on average, {} at most{}\n",
      format(Seconds(f.time_dilation)), format(Seconds(f.real_iteration_time_s)), format(Seconds(f.mean_lateness_s)),
      format(Seconds(f.largest_lateness_s)),
      f.disturbed ? "\ndisturbed: this machine was too busy to keep the time of the model" : "");
}

}  // namespace

std::function<void(const std::string&)> stall_handler(const comm::World& world, std::function<void()> before) {
  return [&world, before = std::move(before)](const std::string& text) {
    // All ranks wait for the same lost one: the lowest speaks and ends the others before they do. The first rank may
    // have begun to wait a moment later, and it is the one that marks the results.
    constexpr std::chrono::milliseconds kForTheFirst{1000}, kForLower{100};
    if (world.rank() > 0) std::this_thread::sleep_for(kForTheFirst + kForLower * std::min(world.rank(), 20));
    before();
    log::error(fmt::format("stalled on {}: {}; a peer is lost, stopped or out of step", world.host(), text));
    world.abort(ExitCode::failed);
  };
}

RunRecord::RunRecord(const Session& session, const Chosen& chosen, const runtime::Programs& programs,
                     const Arguments& arguments, const comm::World& world, const runtime::TrainingCounters& begun)
    : session_(session),
      programs_(programs),
      arguments_(arguments),
      world_(world),
      progress_(begun.step, session.experiment.train.iterations, session.experiment.data.batch,
                arguments.quiet || !world.root()),
      samples_(begun.samples) {
  world.on_root_then_all([&] {
    const sim::Simulation simulation = predict(session, programs.train.front());
    predicted_ = *chosen.report;
    planner::take_times(simulation, session.experiment.data.batch, predicted_);
    stage_times_ = predicted_stage_times(simulation.timeline.rows, programs.train.front());
    for (const TimelineRow& row : simulation.timeline.rows) {
      if (row.iteration == 0) predicted_s_.push_back((row.end - row.start).value());
    }
    const std::filesystem::path file = session.experiment.output;
    if (!arguments.baseline.empty()) baseline_ = read_baseline(arguments.baseline, run_kind(session));
    make_folder(file.parent_path());
    record::ResultsOptions options{arguments.overwrite, arguments.overwrite_lock, {}};
    if (arguments.resume) options.resume_after = begun.step;
    file_.emplace(file, context_of(session, chosen, world, arguments), options);
    return std::string();
  });
}

void RunRecord::expect(const RankReport& forecast) {
  std::int64_t sum = 0;
  for (const std::string& text : world_.gather(std::to_string(forecast.peak_bytes()))) {
    predicted_bytes_.push_back(std::stoll(text));
    sum += predicted_bytes_.back();
  }
  if (predicted_bytes_.empty()) return;
  // The plan's own figures are those of the search, which counts tensors and asks no device.
  predicted_.peak_memory_bytes = *std::max_element(predicted_bytes_.begin(), predicted_bytes_.end());
  predicted_.mean_memory_bytes = sum / static_cast<std::int64_t>(predicted_bytes_.size());
  predicted_.memory_efficiency =
      predicted_.throughput_samples_per_s / (static_cast<double>(predicted_.peak_memory_bytes) / kGiB);
}

void RunRecord::start(Emulation& emulation) {
  emulation_ = &emulation;
  emulation.start(world_);
}

void RunRecord::iteration(const IterationRow& row) {
  if (file_) file_->add(row, row.samples - samples_);
  samples_ = row.samples;
  progress_.show(row);
}

void RunRecord::evaluation(const EvaluationRow& row) {
  if (file_) file_->add(row);
  progress_.show(row);
}

void RunRecord::before_checkpoint() {
  if (file_) file_->keep();
}

void RunRecord::close(const runtime::Outcome& outcome) {
  const std::vector<std::string> texts = world_.gather(to_text(rank_row(session_, programs_, world_, outcome.rank)));
  const std::vector<std::string> timelines =
      arguments_.trace ? world_.gather(to_text(outcome.last_iteration.rows)) : std::vector<std::string>();
  const std::vector<std::string> stages = world_.gather(to_text(stage_seconds(outcome.last_iteration.rows)));
  if (emulation_ != nullptr) emulated_ = emulation_->facts(world_);
  if (!world_.root()) return;
  std::vector<record::RankRow> ranks;
  for (const std::string& text : texts) {
    ranks.push_back(rank_row_from_text(text));
    ranks.back().predicted_peak_bytes = predicted_bytes_[ranks.size() - 1];
  }
  std::vector<TimelineRow> timeline;
  for (const std::string& text : timelines) {
    const std::vector<TimelineRow> rows = timeline_from_text(text);
    timeline.insert(timeline.end(), rows.begin(), rows.end());
  }
  for (const std::string& text : stages) take_measured(stage_seconds_from_text(text), stage_times_);
  progress_.finish();
  write_results(outcome, ranks, timeline);
  print_summary(outcome, ranks);
}

void RunRecord::write_results(const runtime::Outcome& outcome, const std::vector<record::RankRow>& ranks,
                              const std::vector<TimelineRow>& timeline) {
  const RunFigures figures = measured_figures(session_, outcome, ranks);
  file_->add(ranks);
  if (!timeline.empty()) file_->add(timeline, session_.experiment.train.iterations, predicted_s_);
  file_->add_group("prediction",
                   emulated_ ? emulated_prediction_facts(predicted_, figures) : prediction_facts(predicted_, figures));
  file_->add("stage_times", stage_times_table(stage_times_),
             "one micro-batch of each stage, in the last iteration and as predicted");
  if (session_.profile) file_->add_group("costs", costs_facts(session_));
  std::vector<record::Fact> summary =
      emulated_ ? emulated_summary_facts(figures, *emulated_) : summary_facts(figures, outcome);
  for (const record::Fact& fact : scaling_facts(figures)) summary.push_back(fact);
  file_->add_group("summary", summary);
  file_->close(outcome.signal != 0 ? "interrupted" : "complete");
}

std::vector<record::Fact> RunRecord::scaling_facts(const RunFigures& figures) const {
  if (!baseline_) return {};
  return speed_up_facts(*baseline_, figures.throughput_samples_per_s, session_.cluster.size());
}

void RunRecord::print_summary(const runtime::Outcome& outcome, const std::vector<record::RankRow>& ranks) const {
  const RunFigures measured = measured_figures(session_, outcome, ranks);
  const plan::PlanReport& predicted = predicted_;
  if (arguments_.format == Format::json) {
    nlohmann::json document{
        {"problem", problem_json(session_.graph, session_.cluster.size(), session_.experiment.data.batch)},
        {"kind", run_kind(session_)},
        {"plans", {plan_json(predicted, session_.graph)}},
        {"measured", figures_json(measured)},
        {"costs", costs_json(session_)},
        {"stage_times", stage_times_json(stage_times_, emulated_ ? "emulated" : "measured")},
        {"results", session_.experiment.output}};
    for (const record::Fact& fact : scaling_facts(measured)) {
      std::visit([&](const auto& value) { document["measured"][fact.name] = value; }, fact.value);
    }
    // How far an emulation is from its own model says nothing of the model on hardware: it has a name of its own.
    document[emulated_ ? "emulation_error" : "prediction_error"] = {
        {"iteration_time", predicted.iteration_time_s / measured.iteration_time_s - 1},
        {"peak_memory",
         static_cast<double>(predicted.peak_memory_bytes) / static_cast<double>(measured.peak_memory_bytes) - 1}};
    if (emulated_) {
      document["emulation"] = emulation_json(*emulated_);
    } else {
      document["final_loss"] = outcome.final_loss;
      if (outcome.evaluation) {
        document["test"] = {{"loss", outcome.evaluation->loss}, {"accuracy", outcome.evaluation->accuracy}};
      }
    }
    print(document);
    return;
  }
  print(fmt::format("{}: {} on {}, {}, {}, {} by {}\n\n", session_.experiment.name, session_.experiment.model.name,
                    counted(world_.size(), "rank"), counted(predicted.pipelines, "pipeline"),
                    counted(predicted.micro_batches, "micro-batch"), predicted.schedule, predicted.partitioner));
  if (arguments_.explain) print_explanation(session_, predicted);
  const auto time = [](double s) { return format(Seconds(s)); };
  const auto size = [](std::int64_t b) { return format(Bytes(b)); };
  planner::Table figures{{"", run_kind(session_), "predicted"},
                         {{"iteration time", time(measured.iteration_time_s), time(predicted.iteration_time_s)},
                          {"throughput", fmt::format("{:.0f} samples/s", measured.throughput_samples_per_s),
                           fmt::format("{:.0f} samples/s", predicted.throughput_samples_per_s)},
                          {"peak memory", size(measured.peak_memory_bytes), size(predicted.peak_memory_bytes)},
                          {"memory efficiency", fmt::format("{:.0f} samples/s/GiB", measured.memory_efficiency),
                           fmt::format("{:.0f} samples/s/GiB", predicted.memory_efficiency)},
                          {"bubble", fmt::format("{:.1f} %", measured.bubble_fraction * 100),
                           fmt::format("{:.1f} %", predicted.bubble_fraction * 100)}}};
  if (baseline_) {
    const auto facts = scaling_facts(measured);
    figures.rows.push_back({"speed-up", fmt::format("{:.3g}", std::get<double>(facts[0].value)), ""});
    figures.rows.push_back({"scaling efficiency", fmt::format("{:.1f} %", std::get<double>(facts[1].value) * 100), ""});
  }
  print(table_text(figures));
  print("\n" + table_text(stage_times_text(stage_times_, run_kind(session_))));
  planner::Table table{{"rank", "host", "pipeline", "stage", "busy", "idle", "memory", "resident"}, {}};
  for (const record::RankRow& row : ranks) {
    table.rows.push_back({std::to_string(row.rank), row.host, std::to_string(row.pipeline), row.stages,
                          format(row.report.busy), format(row.report.idle), size(row.report.peak_bytes()),
                          size(row.report.peak_rss_bytes)});
  }
  print("\n" + table_text(table));
  if (outcome.signal != 0 && !emulated_) {
    print(
        fmt::format("\nstopped by a signal after iteration {} of {}; the checkpoint is in {}, --resume goes on\n"
                    "loss {:.4f}\nresults: {}\n",
                    outcome.iterations, session_.experiment.train.iterations,
                    checkpoint_root(session_.experiment).string(), outcome.final_loss, session_.experiment.output));
    return;
  }
  print("\n" + (emulated_ ? emulation_text(*emulated_)
                          : fmt::format("final loss {:.4f}{}\n", outcome.final_loss,
                                        outcome.evaluation ? fmt::format(", test accuracy {:.2f} %",
                                                                         outcome.evaluation->accuracy * 100)
                                                           : "")));
  print(fmt::format("results: {}\n", session_.experiment.output));
}

void RunRecord::fail() {
  try {
    if (file_) file_->close("failed");
  } catch (const Error&) {
    // A full disk: the error that ended the run is the one to tell, and the rows flushed before are safe.
  }
}

}  // namespace millrace::app
