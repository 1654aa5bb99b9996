// Escapes and joins cells.
#include "record/table_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"

namespace millrace::record {
namespace {

std::string on_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string latex_field(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}':
        out += '\\';
        [[fallthrough]];
      default:
        out += c;
    }
  }
  return out;
}

std::string markdown_field(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '`' || c == '<' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string line(const std::vector<std::string>& cells, const std::string& separator,
                 std::string (*escape)(const std::string&)) {
  std::vector<std::string> escaped;
  for (const std::string& cell : cells) escaped.push_back(escape(on_one_line(cell)));
  return join(escaped, separator);
}

// A column of numbers is set to the right.
bool is_numeric(const TextTable& table, std::size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(), [&](const std::vector<std::string>& row) {
    const std::string& cell = row[column];
    return cell.empty() || std::isdigit(static_cast<unsigned char>(cell.front())) != 0 || cell.front() == '-';
  });
}

}  // namespace

std::string csv_text(const DataTable& table) {
  std::vector<std::string> names;
  for (const storage::Column& column : table.columns) names.push_back(column.name);
  std::string text = line(names, ",", csv_field) + "\n";
  for (const auto& row : table.rows) {
    std::vector<std::string> fields;
    for (const Value& value : row) fields.push_back(to_text(value));
    text += line(fields, ",", csv_field) + "\n";
  }
  return text;
}

std::string markdown_text(const TextTable& table) {
  std::string text = "| " + line(table.columns, " | ", markdown_field) + " |\n|";
  for (std::size_t c = 0; c < table.columns.size(); ++c) text += is_numeric(table, c) ? "---:|" : "---|";
  text += "\n";
  for (const auto& row : table.rows) text += "| " + line(row, " | ", markdown_field) + " |\n";
  return text;
}

std::string latex_text(const TextTable& table) {
  std::string text = "\\begin{tabular}{";
  for (std::size_t c = 0; c < table.columns.size(); ++c) text += is_numeric(table, c) ? 'r' : 'l';
  text += "}\n\\toprule\n" + line(table.columns, " & ", latex_field) + " \\\\\n\\midrule\n";
  for (const auto& row : table.rows) text += line(row, " & ", latex_field) + " \\\\\n";
  return text + "\\bottomrule\n\\end{tabular}\n";
}

std::string readable(const Value& value, const storage::Column& column) {
  const std::optional<double> number = number_of(value);
  if (!number) {
    const std::string text = to_text(value);
    return text.substr(0, text.find('\n'));  // what follows a reason's first line are its details
  }
  if (column.unit == "s") return format(Seconds(*number));
  if (column.unit == "bytes") return format(Bytes(static_cast<std::int64_t>(*number)));
  if (std::holds_alternative<std::int64_t>(value)) return to_text(value);
  return std::abs(*number) >= 1000 ? fmt::format("{:.0f}", *number) : fmt::format("{:.4g}", *number);
}

TextTable readable(const DataTable& table) {
  TextTable text;
  for (const storage::Column& column : table.columns) text.columns.push_back(column.name);
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (std::size_t c = 0; c < row.size(); ++c) cells.push_back(readable(row[c], table.columns[c]));
    text.rows.push_back(std::move(cells));
  }
  return text;
}

}  // namespace millrace::record
