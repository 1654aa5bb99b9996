// Builds and reads the HDF5 file of a sweep.
#include "record/cells_file.h"

#include "base/errors.h"
#include "storage/file.h"
#include "storage/write_aside.h"

namespace millrace::record {
namespace {

void write_detail(storage::Group& details, const CellDetail& detail) {
  storage::Group group = details.make_group(detail.id);
  group.make_text("config", detail.config, {"1", "effective experiment, YAML"});
  if (!detail.plan.empty()) group.make_text("plan", detail.plan, {"1", "plan, YAML"});
  if (!detail.stages.empty()) group.make_text("stages", detail.stages, {"1", "stages of the plan, JSON"});
  if (!detail.ranks.empty()) group.make_text("ranks", detail.ranks, {"1", "seconds of each rank, JSON"});
}

// Integers cannot say that they are missing; the status of their row does.
void drop_figures_without_plan(CellsFile& content) {
  const std::size_t status = content.cells.at("status");
  for (auto& row : content.cells.rows) {
    if (to_text(row[status]) == "done") continue;
    for (std::size_t c = 3 + content.axes.size(); c < row.size(); ++c) {
      const storage::Column& column = content.cells.columns[c];
      if (column.type != storage::ColumnType::float64 && !column.name.starts_with("cell_")) row[c] = {};
    }
  }
}

}  // namespace

void write_cells_file(const std::filesystem::path& file, const CellsFile& content) {
  storage::write_aside(file, storage::Existing::replace, [&](const std::filesystem::path& aside) {
    storage::File made = storage::File::make(aside);
    for (const Fact& fact : content.root) {
      std::visit([&](const auto& value) { made.set(fact.name, value); }, fact.value);
    }
    made.set("axes", content.axes);
    write_table(made, "cells", content.cells, "one row for each finished cell of the sweep");
    if (!content.published.empty()) {
      made.make_text("published", content.published, {"1", "published figures to print beside ours, CSV"});
    }
    storage::Group details = made.make_group("cells_detail");
    for (const CellDetail& detail : content.details) write_detail(details, detail);
    made.close();
  });
}

bool is_cells_file(const storage::File& file) { return file.contains("cells"); }

CellsFile read_cells_file(const std::filesystem::path& path) {
  const storage::File file = storage::File::open(path);
  if (!is_cells_file(file)) throw InvalidInput(path.string() + ": holds no cells of a sweep");
  CellsFile content;
  content.axes = file.texts("axes");
  content.cells = read_table(file, "cells");
  if (file.contains("published")) content.published = file.text_dataset("published");
  for (const char* name : {"sweep", "command", "started", "millrace_version", "git_commit", "host", "status"}) {
    if (file.has(name)) content.root.push_back({name, file.text(name)});
  }
  drop_figures_without_plan(content);
  return content;
}

}  // namespace millrace::record
