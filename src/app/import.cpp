// `millrace import`: a graph of another tool in, a millrace graph file out, and what the graph is.
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output_file.h"
#include "app/print.h"
#include "base/log.h"
#include "base/text.h"
#include "import/graph_file.h"
#include "import/import.h"
#include "import/summary.h"
#include "storage/write_aside.h"

namespace millrace::app {
namespace {

nlohmann::json summary_json(const import::Imported& imported) {
  const import::Summary summary = import::summarize(imported.graph);
  return {{"format", imported.format},
          {"name", imported.graph.name()},
          {"operators", summary.operators},
          {"edges", summary.edges},
          {"tensors", summary.tensors},
          {"parameters", summary.parameters},
          {"parameter_bytes", summary.parameter_bytes},
          {"forward_s", summary.forward_s},
          {"backward_s", summary.backward_s},
          {"forward_flops", summary.flops},
          {"depth", summary.depth},
          {"width", summary.width},
          {"batch", imported.batch},
          {"trainable", summary.without_kernels.empty()},
          {"machine", summary.machine}};
}

void print_summary(const import::Imported& imported) {
  const import::Summary summary = import::summarize(imported.graph);
  const auto row = [](const char* what, const std::string& value) { print(fmt::format("{:<12}{}\n", what, value)); };
  row("format", imported.format);
  row("name", imported.graph.name());
  row("operators", fmt::format("{}, {} edges, {} tensors", summary.operators, summary.edges, summary.tensors));
  row("depth", fmt::format("{} operators on the longest path; at least {} side by side", summary.depth, summary.width));
  row("parameters", fmt::format("{} ({})", summary.parameters, format(Bytes(summary.parameter_bytes))));
  if (summary.forward_s + summary.backward_s > 0) {
    row("time", fmt::format("{} forward, {} backward for a sample, over all operators with figures",
                            format(Seconds(summary.forward_s)), format(Seconds(summary.backward_s))));
  }
  if (summary.flops > 0) row("work", fmt::format("{:.3g} FLOP forward for a sample", summary.flops));
  row("batch", fmt::format("{} without a data section", imported.batch));
  row("machine", summary.machine.empty() ? "none in the file" : summary.machine);
  row("training", summary.without_kernels.empty()
                      ? "every operator has kernels"
                      : fmt::format("planned and simulated only: '{}' has no kernels", summary.without_kernels));
}

void write(const import::Imported& imported, const Arguments& arguments) {
  const std::string& file = *arguments.output;
  const bool json = std::filesystem::path(file).extension() == ".json";
  storage::write_text_aside(file, existing(arguments),
                            import::write_graph_file(imported.graph, imported.batch,
                                                     json ? import::GraphForm::json : import::GraphForm::yaml));
  log::notice(fmt::format("wrote {}: {} operators", file, imported.graph.size()));
}

}  // namespace

ExitCode import_graph(const Arguments& arguments, comm::World& world) {
  world.on_root_then_all([&] {
    if (arguments.output) {  // before a large graph is read
      storage::check_target(*arguments.output, existing(arguments));
      refuse_same_file(*arguments.output, {arguments.files.front()});
    }
    const import::Imported imported = import::load(arguments.files.front(), {arguments.profile_batch});
    if (arguments.output) write(imported, arguments);
    if (arguments.format == Format::json) {
      print(summary_json(imported));
    } else if (arguments.summary || !arguments.output) {
      print_summary(imported);
    }
    return std::string();
  });
  return ExitCode::done;
}

}  // namespace millrace::app
