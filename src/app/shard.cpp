// `millrace shard`: how operators are split over a mesh, tensor by tensor, and what it costs.
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output_file.h"
#include "app/planning.h"
#include "app/print.h"
#include "app/session.h"
#include "app/shard_documents.h"
#include "base/log.h"
#include "base/text.h"
#include "shard/sharding.h"
#include "storage/write_aside.h"

namespace millrace::app {
namespace {

using shard::Sharded;

std::filesystem::path device_file(const Arguments& arguments, int device) {
  return std::filesystem::path(*arguments.output) / fmt::format("device-{}.json", device);
}

// Before the work, so that nothing is printed in vain.
void check_targets(const Arguments& arguments, int devices) {
  if (!arguments.dot.empty()) {
    storage::check_target(arguments.dot, existing(arguments));
    refuse_same_file(arguments.dot, {arguments.files.front()});
  }
  if (!arguments.output) return;
  for (int device = 0; device < devices; ++device) {
    storage::check_target(device_file(arguments, device), existing(arguments));
  }
}

shard::Request request_of(const Session& session) {
  const Experiment& experiment = session.experiment;
  shard::Request request;
  request.axes = experiment.plan.mesh;
  if (request.axes.empty()) request.axes.push_back({"tensor", session.cluster.size()});
  request.annotations = experiment.plan.annotations;
  if (!experiment.plan.micro_batches.empty()) request.micro_batches = experiment.plan.micro_batches.front();
  if (experiment.plan.micro_batch_size) {
    request.micro_batches = std::max<std::int64_t>(1, experiment.data.batch / *experiment.plan.micro_batch_size);
  }
  request.rows = std::max<std::int64_t>(1, experiment.data.batch / request.micro_batches);
  const plan::TrainingBytes training = training_bytes(experiment);
  request.real_bytes = training.real;
  request.held.optimizer_bytes = training.optimizer_per_parameter;
  return request;
}

void print_tensors(const Sharded& sharded, bool all) {
  planner::Table table{{"tensor", "dims", "placement", "why"}, {}};
  std::size_t left_out = 0;
  for (TensorId id = 0; id < static_cast<TensorId>(sharded.graph->tensors().size()); ++id) {
    std::string why;
    for (int axis = 0; axis < sharded.mesh->axis_count(); ++axis) {
      const std::string text = origin_text(sharded, id, axis);
      if (!text.empty()) why += (why.empty() ? "" : "; ") + text;
    }
    if (why.empty() && !all) {
      ++left_out;
      continue;
    }
    const auto view = sharded.tensors->view(id);
    table.rows.push_back({sharded.graph->tensor(id).name, format(Dims(view.extents.begin(), view.extents.end())),
                          shard::format(sharded.cut.decision.placements[static_cast<std::size_t>(id)], *sharded.mesh),
                          why});
  }
  print(table_text(table));
  if (left_out > 0) print(fmt::format("{} more tensors are whole on every device (--verbose lists them)\n", left_out));
}

void add_rows(const Sharded& sharded, const std::vector<shard::Instruction>& list, const char* pass,
              planner::Table& table) {
  const auto behind = [&](OpId op) {
    return op < 0 || op >= sharded.graph->size() ? std::string("start") : sharded.graph->op(op).name;
  };
  for (const shard::Instruction& one : list) {
    for (const shard::InnerReduction& inner : one.inner) {
      table.rows.push_back({pass, "inside", behind(one.op), fmt::format("{} elements", inner.elements),
                            axes_text(*sharded.mesh, inner.axes), "", format(inner.cost.moved),
                            format(inner.cost.time)});
    }
    if (one.kind != shard::Instruction::Kind::convert || one.step.local()) continue;
    const shard::Value& value = sharded.cut.values[static_cast<std::size_t>(one.to)];
    table.rows.push_back(
        {pass, std::string(shard::name(one.step.kind)), behind(one.op),
         sharded.graph->tensor(value.tensor).name + (value.gradient ? " (gradient)" : ""),
         axes_text(*sharded.mesh, one.step.axes),
         shard::format(one.step.from, *sharded.mesh) + " -> " + shard::format(one.step.to, *sharded.mesh),
         format(one.cost.moved), format(one.cost.time)});
  }
}

void print_collectives(const Sharded& sharded) {
  planner::Table table{{"pass", "collective", "behind", "tensor", "axis", "placement", "bytes", "time"}, {}};
  add_rows(sharded, sharded.cut.forward, "forward", table);
  add_rows(sharded, sharded.cut.backward, "backward", table);
  if (table.rows.empty()) {
    print(std::string("\nno collectives\n"));
    return;
  }
  print("\n" + table_text(table));
}

void print_totals(const Sharded& sharded) {
  const shard::StepCost often = sharded.cut.per_micro_batch(), once = sharded.cut.once();
  print(fmt::format("\neach micro-batch of {} rows moves {} in {}; each iteration {} in {} for gradients\n",
                    sharded.tensors->rows(), format(often.moved), format(often.time), format(once.moved),
                    format(once.time)));
  Bytes most{};
  for (const Bytes bytes : sharded.memory) most = std::max(most, bytes);
  print(fmt::format("the fullest device holds {}{}\n", format(most),
                    sharded.fits ? "" : ", which is more than its memory"));
  if (sharded.automatic) {
    print(std::string(sharded.exact ? "no annotations: the choice costs least of all that the program can express\n"
                                    : "no annotations: the choice is the best that was found; states were pruned\n"));
  }
}

void write_files(const Sharded& sharded, const Arguments& arguments) {
  if (!arguments.dot.empty()) {
    storage::write_text_aside(arguments.dot, existing(arguments), graphviz(sharded));
    log::notice(fmt::format("wrote {}", arguments.dot));
  }
  if (!arguments.output) return;
  for (int device = 0; device < sharded.mesh->size(); ++device) {
    storage::write_text_aside(device_file(arguments, device), existing(arguments),
                              device_document(sharded, device).dump(1) + "\n");
  }
  log::notice(fmt::format("wrote {} graphs to {}", sharded.mesh->size(), *arguments.output));
}

}  // namespace

ExitCode shard_graph(const Arguments& arguments, comm::World& world) {
  const std::string fits = world.on_root_then_all([&] {
    const int ranks = world.size() > 1 ? world.size() : arguments.ranks.value_or(1);
    const Session session = planning_session(read_experiment({arguments.files.front(), arguments.sets, {}}), ranks);
    const shard::Request request = request_of(session);
    int devices = 1;
    for (const shard::Axis& axis : request.axes) devices *= axis.size;
    check_targets(arguments, devices);
    const auto cost = make_costs(session);
    const Sharded sharded = shard::shard(session.graph, session.cluster, *cost, request);
    if (arguments.format == Format::json) {
      print(shard_document(sharded));
    } else {
      print_tensors(sharded, arguments.verbose);
      print_collectives(sharded);
      print_totals(sharded);
    }
    write_files(sharded, arguments);
    return std::string(sharded.fits ? "fits" : "");
  });
  return fits.empty() ? ExitCode::infeasible : ExitCode::done;
}

}  // namespace millrace::app
