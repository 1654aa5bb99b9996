// Builds and reads the HDF5 file of a sweep.
#include "record/cells_file.h"

#include "base/errors.h"
#include "storage/file.h"
#include "storage/write_aside.h"

namespace millrace::record {
namespace {

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

GrowingCellsFile::GrowingCellsFile(std::filesystem::path file, const CellsFile& content)
    : path_(std::move(file)), made_(storage::File::in_memory(path_)) {
  for (const Fact& fact : content.root) {
    std::visit([&](const auto& value) { made_.set(fact.name, value); }, fact.value);
  }
  made_.set("axes", content.axes);
  if (!content.published.empty()) {
    made_.make_text("published", content.published, {"1", "published figures to print beside ours, CSV"});
  }
  details_ = made_.make_group("cells_detail");
}

void GrowingCellsFile::put(const CellDetail& detail) {
  if (details_.contains(detail.id)) details_.remove(detail.id);
  storage::Group group = details_.make_group(detail.id);
  group.make_text("config", detail.config, {"1", "effective experiment, YAML"});
  if (!detail.plan.empty()) group.make_text("plan", detail.plan, {"1", "plan, YAML"});
  if (!detail.stages.empty()) group.make_text("stages", detail.stages, {"1", "stages of the plan, JSON"});
  if (!detail.ranks.empty()) group.make_text("ranks", detail.ranks, {"1", "seconds of each rank, JSON"});
}

void GrowingCellsFile::write(const DataTable& cells, const std::string& status) {
  made_.set("status", status);
  if (made_.contains("cells")) made_.remove("cells");
  write_table(made_, "cells", cells, "one row for each finished cell of the sweep");
  storage::write_text_aside(path_, storage::Existing::replace, made_.image());
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
