// `millrace report`: tables and pages from results files.
#include <algorithm>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/output_file.h"
#include "app/print.h"
#include "base/log.h"
#include "record/page/page.h"
#include "record/paper_table.h"
#include "record/results.h"
#include "record/scaling.h"
#include "record/table_text.h"
#include "storage/write_aside.h"

namespace millrace::app {
namespace {

using record::DataTable;
using record::TextTable;

std::string formatted(const TextTable& table, TableFormat format) {
  switch (format) {
    case TableFormat::markdown:
      return record::markdown_text(table);
    case TableFormat::latex:
      return record::latex_text(table);
    case TableFormat::csv: {
      DataTable data;
      for (const std::string& column : table.columns) {
        data.columns.push_back({column, storage::ColumnType::text, "1", ""});
      }
      for (const auto& row : table.rows) data.rows.emplace_back(row.begin(), row.end());
      return record::csv_text(data);
    }
    case TableFormat::text:
      break;
  }
  return table_text({table.columns, table.rows});
}

std::vector<record::PaperRow> paper_of(const std::vector<record::Results>& all) {
  std::vector<record::PaperRow> rows;
  for (const record::Results& results : all) {
    if (results.published.empty()) continue;
    const auto figures = record::read_published(results.published, results.file.string() + ": /published");
    const auto more = record::paper_rows(figures, results.cells, results.axes);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

std::string paper_text(const std::vector<record::Results>& all, TableFormat format) {
  const std::vector<record::PaperRow> rows = paper_of(all);
  if (rows.empty()) {
    throw InvalidInput("--paper: no file has published figures; a sweep names them: published: FILE.csv");
  }
  return formatted(readable(rows), format);
}

void write_page(const std::vector<record::Results>& all, const Arguments& arguments) {
  const std::string& file = *arguments.output;
  refuse_same_file(file, {arguments.files.begin(), arguments.files.end()});
  std::string title = all.front().file.stem().string();
  if (all.size() > 1) title += fmt::format(" and {} more", all.size() - 1);
  storage::write_text_aside(file, existing(arguments), record::report_page(title, all, paper_of(all)));
  log::notice(fmt::format("wrote {}", file));
}

std::string cells_text(const std::vector<record::Results>& all, TableFormat format) {
  const DataTable cells = record::merged(all);
  if (format == TableFormat::csv) return record::csv_text(cells);
  std::string text = formatted(record::readable(record::essential(all)), format);
  const record::Scaling scaling = record::scaling_of(all);
  if (!scaling.rows.empty()) text += "\n" + formatted(readable(scaling), format);
  return text;
}

}  // namespace

ExitCode report(const Arguments& arguments, comm::World& world) {
  if (!world.root()) return ExitCode::done;
  std::vector<record::Results> all;
  for (const std::string& file : arguments.files) all.push_back(record::read_results(file));
  if (arguments.output) write_page(all, arguments);
  if (arguments.output && !arguments.paper && !arguments.table) return ExitCode::done;
  if (arguments.paper) {
    print(paper_text(all, arguments.table.value_or(TableFormat::text)));
  } else {
    print(cells_text(all, arguments.table.value_or(TableFormat::text)));
  }
  return ExitCode::done;
}

}  // namespace millrace::app
