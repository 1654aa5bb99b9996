// Reads cells one character at a time, counting lines and columns.
#include "config/csv.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::config {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, std::shared_ptr<const Source> source, Problems& problems)
      : text_(text), source_(std::move(source)), problems_(problems) {}

  bool at_end() const { return place_ == text_.size(); }

  // The cells up to the end of a line; one empty cell for an empty line.
  CsvRow row() {
    CsvRow cells;
    const std::size_t before = problems_.size();
    do {
      cells.push_back(cell());
    } while (take(','));
    take('\r');
    if (!at_end() && !take('\n')) {
      problems_.add(
          here(), "",
          fmt::format("found '{}' after a quoted cell, allowed: a comma or the end of the line", text_[place_]));
      while (!at_end() && text_[place_] != '\n') next();
      take('\n');
    }
    if (problems_.size() != before) cells.clear();  // how many it has says nothing
    return cells;
  }

 private:
  Where here() const { return {source_, line_, column_}; }

  void next() {
    if (text_[place_++] == '\n') {
      ++line_;
      column_ = 1;
    } else {
      ++column_;
    }
  }
  bool take(char wanted) {
    if (at_end() || text_[place_] != wanted) return false;
    next();
    return true;
  }

  CsvCell cell() {
    CsvCell cell{"", here()};
    if (!take('"')) {
      while (!at_end() && text_[place_] != ',' && text_[place_] != '\n' && text_[place_] != '\r') {
        cell.text += text_[place_];
        next();
      }
      return cell;
    }
    while (true) {
      if (at_end()) {
        problems_.add(cell.where, "", "a quoted cell does not end");
        return cell;
      }
      if (take('"')) {
        if (!take('"')) return cell;
        cell.text += '"';
        continue;
      }
      cell.text += text_[place_];
      next();
    }
  }

  std::string_view text_;
  std::shared_ptr<const Source> source_;
  Problems& problems_;
  std::size_t place_ = 0;
  int line_ = 1, column_ = 1;
};

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

CsvTable parse_csv(std::string_view text, const std::string& name, Problems& problems) {
  if (text.empty()) throw InvalidInput(fmt::format("{}: holds nothing, allowed: a header line and rows", name));
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets write it
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  CsvReader reader(text, std::make_shared<const Source>(Source{name, std::filesystem::path(name).parent_path()}),
                   problems);
  CsvTable table;
  CsvRow header = reader.row();
  if (header.empty()) return table;
  for (CsvCell& cell : header) {
    if (table.columns.empty()) table.where = cell.where;
    if (const auto first = table.column(cell.text)) {
      problems.add(cell.where, cell.text, fmt::format("given twice, allowed: once; column {} is it too", *first + 1));
    }
    table.columns.push_back(std::move(cell.text));
  }
  while (!reader.at_end()) {
    CsvRow row = reader.row();
    if (row.empty() || (row.size() == 1 && row.front().text.empty())) continue;
    if (row.size() != table.columns.size()) {
      problems.add(row.front().where, "",
                   fmt::format("found {} cells, allowed: {}, as in the header", row.size(), table.columns.size()));
      continue;
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

CsvTable load_csv(const std::filesystem::path& file, Problems& problems) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) {
    throw InvalidInput(fmt::format("{}: cannot be read", file.string()));
  }
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  return parse_csv(text, file.string(), problems);
}

}  // namespace millrace::config
