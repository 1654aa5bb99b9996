// Appends, syncs and reads back the lines of a sweep.
#include "record/cell_log.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "storage/append.h"

namespace millrace::record {
namespace {

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InvalidInput(file.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string id_of(const std::string& line) {
  const nlohmann::json document = nlohmann::json::parse(line, nullptr, false);
  if (!document.is_object()) return "";
  const auto cell = document.find("cell");
  return cell != document.end() && cell->is_string() ? cell->get<std::string>() : "";
}

}  // namespace

std::vector<LoggedCell> read_cell_log(const std::filesystem::path& file) {
  const std::string text = content(file);
  std::vector<LoggedCell> cells;
  std::size_t number = 1;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1, ++number) {
    std::string line = text.substr(begin, end - begin);
    std::string id = id_of(line);
    if (id.empty()) {
      throw InvalidInput(
          fmt::format("{}:{}: this is no line of a sweep: an object with key 'cell'", file.string(), number));
    }
    cells.push_back({std::move(id), std::move(line)});
  }
  return cells;
}

CellLog::CellLog(std::filesystem::path file) : file_(std::move(file)) {
  if (std::filesystem::exists(file_)) {
    for (LoggedCell& cell : read_cell_log(file_)) {
      const auto [place, fresh] = places_.emplace(cell.id, cells_.size());
      if (fresh) cells_.emplace_back();
      cells_[place->second] = std::move(cell);
    }
  }
  rewrite();  // cuts off what a kill left of a line
}

void CellLog::add(const LoggedCell& cell) {
  const auto [place, fresh] = places_.emplace(cell.id, cells_.size());
  if (fresh) {
    cells_.push_back(cell);
    storage::append_line(file_, cell.line);
  } else {
    cells_[place->second] = cell;
    rewrite();
  }
}

void CellLog::rewrite() const {
  std::string text;
  for (const LoggedCell& cell : cells_) text += cell.line + "\n";
  storage::write_text_aside(file_, storage::Existing::replace, text);
}

}  // namespace millrace::record
