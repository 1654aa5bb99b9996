// Holds a checkpoint against the experiment that is to go on from it.
#include "app/run_resume.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "base/hash.h"
#include "base/log.h"
#include "config/document.h"
#include "config/emit.h"
#include "plan/plan_text.h"
#include "storage/file.h"

namespace millrace::app {
namespace {

std::string order_text(const Experiment& experiment, const dataset::Source& source) {
  return fmt::format("seed {}, {} samples, batch {}, tail {}", experiment.seed, source.samples(dataset::Split::train),
                     experiment.data.batch, dataset::tail_names()[static_cast<std::size_t>(experiment.data.tail)]);
}

std::string optimizer_text(const runtime::OptimizerOptions& optimizer) {
  switch (optimizer.kind) {
    case runtime::OptimizerKind::adam:
      return "adam";
    case runtime::OptimizerKind::adamw:
      return "adamw";
    case runtime::OptimizerKind::sgd:
      break;
  }
  return optimizer.momentum > 0 ? "sgd with momentum" : "sgd";
}

// Everything that the choice of a plan depends on.
std::string request_text(const Session& session) {
  config::Problems problems;
  const config::Node root = config::load_text(session.experiment.effective, nullptr, problems);
  std::string text = fmt::format("{} devices of kind {}, batch {}, {}, graph {}\n", session.cluster.size(),
                                 session.cluster.name(), session.experiment.data.batch,
                                 optimizer_text(session.experiment.train.optimizer), session.graph.digest());
  for (const char* key : {"cluster", "costs", "plan"}) {
    if (const config::Node* node = root.find(key)) text += config::to_yaml(*node);
  }
  return digest(text);
}

void require_same(const runtime::FoundCheckpoint& checkpoint, const std::string& stored, const std::string& asked) {
  if (stored == asked) return;
  throw InvalidInput(
      fmt::format("--resume: {} was made with {}, the experiment has {}: only the plan, the number of "
                  "ranks, iterations and rates may change",
                  checkpoint.folder.string(), stored, asked));
}

bool is_complete(const std::filesystem::path& results) {
  return std::filesystem::exists(results) && storage::File::open(results).text("status") == "complete";
}

std::optional<runtime::FoundCheckpoint> find(const Session& session, const dataset::Source& source,
                                             const Arguments& arguments) {
  const std::filesystem::path root = checkpoint_root(session.experiment);
  if (!arguments.resume) {
    if (!arguments.overwrite && !storage::StepFolders(root).steps().empty()) {
      throw InvalidInput(root.string() +
                         " holds checkpoints of a former run: --resume goes on from them, --overwrite removes them");
    }
    return std::nullopt;
  }
  auto found = runtime::newest_checkpoint(root, [](const std::string& why) { log::warning(why + "; passed over"); });
  if (!found) return std::nullopt;
  if (found->manifest.graph_digest != session.graph.digest()) {
    throw InvalidInput(fmt::format("--resume: {} is of another model", found->folder.string()));
  }
  require_same(*found, found->manifest.order, order_text(session.experiment, source));
  require_same(*found, found->manifest.optimizer, optimizer_text(session.experiment.train.optimizer));
  return found;
}

}  // namespace

std::filesystem::path checkpoint_root(const Experiment& experiment) {
  return std::filesystem::path(experiment.output).replace_extension(".checkpoints");
}

std::optional<runtime::FoundCheckpoint> find_checkpoint(const Session& session, const dataset::Source& source,
                                                        const Arguments& arguments, const comm::World& world) {
  // The folder's name, then the manifest as it was read.
  const std::string text = world.on_root_then_all([&] {
    const auto found = find(session, source, arguments);
    return found ? found->folder.string() + "\n" + runtime::to_text(found->manifest) : std::string();
  });
  if (text.empty()) return std::nullopt;
  const std::filesystem::path folder = text.substr(0, text.find('\n'));
  return runtime::FoundCheckpoint{folder, runtime::manifest_from_text(text.substr(text.find('\n') + 1), folder)};
}

bool nothing_left(const Session& session, const Arguments& arguments, const comm::World& world,
                  const std::optional<runtime::FoundCheckpoint>& checkpoint) {
  if (!arguments.resume) return false;
  const std::string told = world.on_root_then_all([&] {
    const std::filesystem::path results = session.experiment.output;
    const bool more = checkpoint && checkpoint->manifest.counters.step < session.experiment.train.iterations;
    if (more || !is_complete(results)) {
      log::notice(checkpoint ? fmt::format("going on from {}", checkpoint->folder.string())
                             : fmt::format("{} holds no checkpoint: starting from the beginning",
                                           checkpoint_root(session.experiment).string()));
      return std::string();
    }
    const std::string text =
        results.string() + " is of a complete run: nothing is left to do; --overwrite starts again";
    log::notice(text);
    return text;
  });
  return !told.empty();
}

Chosen plan_to_resume(Session& session, const Arguments& arguments, const comm::World& world,
                      const std::optional<runtime::FoundCheckpoint>& checkpoint) {
  auto& file = session.experiment.plan.file;
  if (!checkpoint || file || checkpoint->manifest.request != request_text(session)) {
    return choose_plan(session, arguments, world);
  }
  file = checkpoint->folder / runtime::kPlanFile;
  Chosen chosen = choose_plan(session, arguments, world);
  file.reset();
  const std::string& partitioner = checkpoint->manifest.partitioner;
  if (chosen.report && !partitioner.empty()) chosen.report->partitioner = partitioner;
  return chosen;
}

runtime::CheckpointSettings checkpoint_settings(const Session& session, const dataset::Source& source,
                                                const Chosen& chosen) {
  const Experiment& experiment = session.experiment;
  runtime::CheckpointSettings settings;
  settings.root = checkpoint_root(experiment);
  settings.every = experiment.train.checkpoint_every;
  settings.keep = experiment.train.checkpoint_keep;
  settings.graph_digest = session.graph.digest();
  settings.order = order_text(experiment, source);
  settings.optimizer = optimizer_text(experiment.train.optimizer);
  settings.request = request_text(session);
  if (chosen.report) settings.partitioner = chosen.report->partitioner;  // rank 0, which writes it
  settings.plan = plan::to_yaml(chosen.plan, session.graph);
  settings.config = experiment.effective;
  return settings;
}

}  // namespace millrace::app
