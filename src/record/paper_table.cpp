// Finds our cells for published figures and judges them.
#include "record/paper_table.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "config/csv.h"
#include "config/number.h"

namespace millrace::record {
namespace {

const std::vector<std::string>& sheet_columns() {
  static const std::vector<std::string> names{"table",     "row",    "select",    "baseline", "metric", "form",
                                              "published", "better", "tolerance", "setting",  "source", "why"};
  return names;
}

class Sheet {
 public:
  Sheet(const std::string& csv, const std::string& name) : table_(config::parse_csv(csv, name, problems_)) {}

  std::vector<PublishedFigure> read() {
    for (const std::string& column : table_.columns) {
      const auto& names = sheet_columns();
      if (std::find(names.begin(), names.end(), column) == names.end()) {
        problems_.add(table_.where, "", unknown_name("column", column, names));
      }
    }
    std::vector<PublishedFigure> figures;
    for (const config::CsvRow& row : table_.rows) figures.push_back(figure_of(row));
    problems_.throw_if_any();
    return figures;
  }

 private:
  const config::CsvCell* cell(const config::CsvRow& row, const std::string& column) const {
    const auto index = table_.column(column);
    return index ? &row[*index] : nullptr;
  }
  std::string text(const config::CsvRow& row, const std::string& column, const std::string& standard = "") const {
    const config::CsvCell* found = cell(row, column);
    return found == nullptr || found->text.empty() ? standard : found->text;
  }
  double number(const config::CsvRow& row, const std::string& column, const std::string& standard) {
    const auto parsed = config::parse_real(text(row, column, standard));
    if (parsed.fault != config::NumberFault::none) {
      const config::CsvCell* found = cell(row, column);
      problems_.add(found != nullptr ? found->where : table_.where, column,
                    fmt::format("found '{}', allowed: a number", text(row, column, standard)));
    }
    return parsed.value;
  }
  std::string word(const config::CsvRow& row, const std::string& column, const std::string& standard,
                   const std::vector<std::string>& words) {
    std::string found = text(row, column, standard);
    if (std::find(words.begin(), words.end(), found) == words.end()) {
      problems_.add(cell(row, column)->where, column, unknown_name("word", found, words));
    }
    return found;
  }
  std::string needed(const config::CsvRow& row, const std::string& column) {
    std::string found = text(row, column);
    if (found.empty()) problems_.add(row.front().where, column, "is missing");
    return found;
  }

  PublishedFigure figure_of(const config::CsvRow& row) {
    PublishedFigure figure;
    figure.table = text(row, "table");
    figure.row = text(row, "row");
    figure.select = text(row, "select");
    figure.baseline = text(row, "baseline");
    figure.metric = needed(row, "metric");
    figure.form = word(row, "form", "value", {"value", "ratio", "change", "efficiency"});
    if (!text(row, "published").empty()) figure.published = number(row, "published", "");
    figure.better = word(row, "better", "higher", {"higher", "lower", "equal"});
    figure.tolerance = number(row, "tolerance", "0");
    figure.setting = text(row, "setting");
    figure.source = text(row, "source");
    figure.why = text(row, "why");
    if (figure.form != "value" && figure.baseline.empty()) {
      problems_.add(row.front().where, "baseline", fmt::format("is missing: the form is {}", figure.form));
    }
    return figure;
  }

  config::Problems problems_;
  config::CsvTable table_;
};

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// "a=1; b=2" as pairs.
std::vector<std::pair<std::string, std::string>> parse_selection(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) throw InvalidInput(fmt::format("select '{}': allowed: column=value; …", text));
    pairs.emplace_back(trimmed(part.substr(0, equals)), trimmed(part.substr(equals + 1)));
    begin = end + 1;
  }
  return pairs;
}

// The mean of a metric over the repetitions of one cell.
struct Selected {
  std::optional<double> value;
  double devices = 1;
  std::string kind;
  std::string why_not;
};

class Cells {
 public:
  Cells(const DataTable& cells, const std::vector<std::string>& axes) : cells_(cells), axes_(axes) {}

  Selected select(const std::string& selection, const std::string& metric) const {
    const std::vector<const std::vector<Value>*> rows = rows_of(selection);
    Selected selected;
    if (rows.empty()) return {{}, 1, "", "no such cell"};
    check_alike(rows, selection);
    double sum = 0;
    for (const auto* row : rows) {
      const auto value = number_of((*row)[cells_.at(metric)]);
      if (to_text((*row)[cells_.at("status")]) != "done" || !value) {
        const std::string reason = to_text((*row)[cells_.at("reason")]);
        return {{}, 1, "", to_text((*row)[cells_.at("status")]) + (reason.empty() ? "" : ", " + reason)};
      }
      sum += *value;
    }
    selected.value = sum / static_cast<double>(rows.size());
    if (const auto devices = cells_.find("devices"))
      selected.devices = number_of((*rows.front())[*devices]).value_or(1);
    selected.kind = to_text((*rows.front())[cells_.at("kind")]);
    return selected;
  }

 private:
  std::vector<const std::vector<Value>*> rows_of(const std::string& selection) const {
    const auto pairs = parse_selection(selection);
    std::vector<const std::vector<Value>*> rows;
    for (const auto& row : cells_.rows) {
      const bool meets = std::all_of(pairs.begin(), pairs.end(), [&](const std::pair<std::string, std::string>& pair) {
        return to_text(row[cells_.at(pair.first)]) == pair.second;
      });
      if (meets) rows.push_back(&row);
    }
    return rows;
  }

  void check_alike(const std::vector<const std::vector<Value>*>& rows, const std::string& selection) const {
    for (const std::string& axis : axes_) {
      const auto column = cells_.find(axis);
      if (!column || axis == "repetition" || axis == "seed") continue;
      for (const auto* row : rows) {
        if (to_text((*row)[*column]) == to_text((*rows.front())[*column])) continue;
        throw InvalidInput(
            fmt::format("published figures: select '{}' means cells of different {}; name it", selection, axis));
      }
    }
  }

  const DataTable& cells_;
  const std::vector<std::string>& axes_;
};

double formed(const PublishedFigure& figure, const Selected& ours, const Selected& base) {
  if (figure.form == "value") return *ours.value;
  const double ratio = *ours.value / *base.value;
  if (figure.form == "change") return ratio - 1;
  return figure.form == "efficiency" ? ratio * base.devices / ours.devices : ratio;
}

bool reached(const PublishedFigure& figure, double ours) {
  const double slack = figure.tolerance * std::abs(*figure.published);
  if (figure.better == "higher") return ours >= *figure.published - slack;
  if (figure.better == "lower") return ours <= *figure.published + slack;
  return std::abs(ours - *figure.published) <= slack;
}

PaperRow row_of(const PublishedFigure& figure, const Cells& cells) {
  PaperRow row{figure, {}, "", ""};
  const Selected ours = cells.select(figure.select, figure.metric);
  const Selected base = figure.form == "value" ? ours : cells.select(figure.baseline, figure.metric);
  row.kind = ours.kind;
  for (const Selected* part : {&ours, &base}) {
    if (part->value) continue;
    row.verdict = "no result: " + part->why_not;
    return row;
  }
  if (ours.kind != base.kind) {
    row.verdict = fmt::format("no result: {} beside a baseline that is {}", ours.kind, base.kind);
    return row;
  }
  row.ours = formed(figure, ours, base);
  if (!figure.published) {
    row.verdict = "nothing published";
    return row;
  }
  row.verdict = reached(figure, *row.ours) ? "reached" : "not reached";
  if (row.verdict != "reached" && !figure.why.empty()) row.verdict += ": " + figure.why;
  return row;
}

std::string number_text(double value, const PublishedFigure& figure) {
  const std::string& form = figure.form;
  constexpr double kMiB = 1 << 20;
  if (form == "value" && figure.metric.ends_with("_bytes")) return fmt::format("{:.4g} MiB", value / kMiB);
  if (form == "change") return fmt::format("{:+.1f} %", value * 100);
  if (form == "efficiency") return fmt::format("{:.1f} %", value * 100);
  return fmt::format("{:.4g}{}", value, form == "ratio" ? "x" : "");
}

}  // namespace

std::vector<PublishedFigure> read_published(const std::string& csv, const std::string& name) {
  return Sheet(csv, name).read();
}

std::vector<PaperRow> paper_rows(const std::vector<PublishedFigure>& figures, const DataTable& cells,
                                 const std::vector<std::string>& axes) {
  const Cells ours(cells, axes);
  std::vector<PaperRow> rows;
  for (const PublishedFigure& figure : figures) rows.push_back(row_of(figure, ours));
  return rows;
}

TextTable readable(const std::vector<PaperRow>& rows) {
  TextTable table{{"table", "row", "metric", "published", "ours", "setting", "kind", "verdict", "source"}, {}};
  for (const PaperRow& row : rows) {
    const PublishedFigure& figure = row.figure;
    const std::string setting = figure.setting.empty() ? figure.select : figure.setting;
    table.rows.push_back({figure.table, figure.row, figure.metric,
                          figure.published ? number_text(*figure.published, figure) : "-",
                          row.ours ? number_text(*row.ours, figure) : "-",
                          figure.baseline.empty() ? setting : setting + " against " + figure.baseline, row.kind,
                          row.verdict, figure.source});
  }
  return table;
}

}  // namespace millrace::record
