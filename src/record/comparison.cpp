// Matches cells of two files and tests their figures.
#include "record/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "record/statistics.h"

namespace millrace::record {
namespace {

struct Metric {
  const char* column;
  bool higher_is_better;
};

// The last two are those of sweeps of predictions.
constexpr Metric kMetrics[]{
    {"throughput_samples_per_s", true}, {"peak_memory_bytes", false}, {"mape", false}, {"worst", false}};

// The rows of one cell, its repetitions.
struct CellRows {
  std::vector<std::size_t> rows;
};

// Cells of two sweeps, or two runs, are the same where their settings are.
std::map<std::string, CellRows> cells_of(const Results& results) {
  std::map<std::string, CellRows> cells;
  for (std::size_t r = 0; r < results.cells.rows.size(); ++r) {
    std::string key = results.sweep ? "" : "run";
    for (const std::string& axis : results.axes) {
      if (axis == "repetition") continue;
      const Value& value = results.cells.rows[r][results.cells.at(axis)];
      key += fmt::format("{}{}={}", key.empty() ? "" : " ", axis, to_text(value));
    }
    cells[key.empty() ? "the one cell" : key].rows.push_back(r);
  }
  return cells;
}

const Value& value_at(const Results& results, std::size_t row, std::string_view column) {
  static const Value kMissing;
  const auto index = results.cells.find(column);
  return index ? results.cells.rows[row][*index] : kMissing;
}

// Throughput of each iteration after the first two.
std::vector<double> iterations_of(const Results& results) {
  std::vector<double> values;
  const auto column = results.iterations.find("throughput");
  constexpr std::size_t kWarmUp = 2;
  for (std::size_t r = kWarmUp; column && r < results.iterations.rows.size(); ++r) {
    if (const auto value = number_of(results.iterations.rows[r][*column])) values.push_back(*value);
  }
  return values;
}

std::vector<double> values_of(const Results& results, const CellRows& cell, const Metric& metric) {
  if (!results.sweep && metric.higher_is_better) return iterations_of(results);
  std::vector<double> values;
  for (const std::size_t row : cell.rows) {
    const Value& found = value_at(results, row, metric.column);
    const auto value = number_of(found);
    if (found == Value(std::int64_t{0})) continue;  // integers have no other sign for what is missing
    if (value && to_text(value_at(results, row, "status")) == "done") values.push_back(*value);
  }
  return values;
}

std::int64_t done_of(const Results& results, const CellRows& cell) {
  return std::count_if(cell.rows.begin(), cell.rows.end(),
                       [&](std::size_t row) { return to_text(value_at(results, row, "status")) == "done"; });
}

// Why the first row that is not done is not.
std::string failure_of(const Results& results, const CellRows& cell) {
  for (const std::size_t row : cell.rows) {
    const std::string status = to_text(value_at(results, row, "status"));
    if (status != "done") return status + " " + to_text(value_at(results, row, "reason"));
  }
  return "";
}

std::string kind_of(const Results& results, const CellRows& cell) {
  for (const std::size_t row : cell.rows) {
    const std::string kind = to_text(value_at(results, row, "kind"));
    if (!kind.empty()) return kind;
  }
  return "";
}

bool is_exact(const std::string& kind, const Metric& metric) {
  return kind == "simulated" || !metric.higher_is_better;  // memory is counted, not timed
}

ComparedFigure compare_values(const std::vector<double>& before, const std::vector<double>& after, const Metric& metric,
                              const std::string& kind, const ComparisonOptions& options) {
  const Sample a = sample_of(before), b = sample_of(after);
  ComparedFigure figure;
  figure.metric = metric.column;
  figure.before = a.mean;
  figure.after = b.mean;
  const double change = a.mean != 0 ? b.mean / a.mean - 1 : (b.mean != 0 ? 1 : 0);
  if (std::abs(change) <= options.tolerance) return figure;
  const bool better = (change > 0) == metric.higher_is_better;
  figure.difference = better ? Difference::better : Difference::worse;
  if (is_exact(kind, metric)) {
    figure.p = 0;
  } else if (a.count < 2 || b.count < 2) {
    figure.difference = Difference::untested;
    figure.note = "one value is no sample: repeat the cells";
  } else {
    figure.p = welch_p(a, b);
  }
  return figure;
}

// Holm: the k-th smallest p of n must be under significance / (n - k + 1); after the first that is not, none is.
void keep_significant(std::vector<ComparedFigure>& figures, double significance) {
  std::vector<ComparedFigure*> tested;
  for (ComparedFigure& figure : figures) {
    if (figure.difference == Difference::better || figure.difference == Difference::worse) tested.push_back(&figure);
  }
  std::sort(tested.begin(), tested.end(), [](const auto* a, const auto* b) { return a->p < b->p; });
  bool holds = true;
  for (std::size_t k = 0; k < tested.size(); ++k) {
    holds = holds && tested[k]->p <= significance / static_cast<double>(tested.size() - k);
    if (holds) continue;
    tested[k]->difference = Difference::none;
    tested[k]->note = "within chance";
  }
}

ComparedFigure lost(const std::string& cell, const std::string& why) {
  ComparedFigure figure{cell, "result", 1, 0, 0, Difference::worse, why};
  return figure;
}

}  // namespace

std::vector<ComparedFigure> compare(const Results& before, const Results& after, const ComparisonOptions& options) {
  const std::map<std::string, CellRows> old_cells = cells_of(before), new_cells = cells_of(after);
  std::vector<ComparedFigure> figures;
  for (const auto& [key, cell] : old_cells) {
    const std::int64_t done = done_of(before, cell);
    if (done == 0) continue;  // nothing to lose
    const auto other = new_cells.find(key);
    if (other == new_cells.end()) {
      figures.push_back(lost(key, "the second file has no such cell"));
      continue;
    }
    const std::int64_t done_now = done_of(after, other->second);
    const std::string failure = failure_of(after, other->second);
    if (done_now == 0) {
      figures.push_back(lost(key, failure));
      continue;
    }
    if (done_now < done && !failure.empty()) {
      figures.push_back(lost(key, fmt::format("{} of {} repetitions: {}", done_now, done, failure)));
    }
    const std::string kind = kind_of(before, cell), new_kind = kind_of(after, other->second);
    if (kind != new_kind) {
      figures.push_back({key, "result", 0, 0, 1, Difference::untested, fmt::format("{} beside {}", kind, new_kind)});
      continue;
    }
    for (const Metric& metric : kMetrics) {
      const std::vector<double> first = values_of(before, cell, metric),
                                second = values_of(after, other->second, metric);
      if (first.empty()) continue;
      figures.push_back(compare_values(first, second, metric, kind, options));
      figures.back().cell = key;
    }
  }
  keep_significant(figures, options.significance);
  return figures;
}

bool any_worse(const std::vector<ComparedFigure>& figures) {
  return std::any_of(figures.begin(), figures.end(),
                     [](const ComparedFigure& figure) { return figure.difference == Difference::worse; });
}

std::string name_of(Difference difference) {
  switch (difference) {
    case Difference::none:
      return "same";
    case Difference::better:
      return "better";
    case Difference::worse:
      return "worse";
    case Difference::untested:
      return "not tested";
  }
  return "";
}

TextTable readable(const std::vector<ComparedFigure>& figures) {
  TextTable table{{"cell", "figure", "first", "second", "change", "p", "verdict"}, {}};
  for (const ComparedFigure& figure : figures) {
    const bool has = figure.metric != "result";
    std::string verdict = name_of(figure.difference);
    if (!figure.note.empty()) verdict += ": " + figure.note;
    const double change = figure.before != 0 ? (figure.after / figure.before - 1) * 100 : 0;
    table.rows.push_back({figure.cell, figure.metric, has ? fmt::format("{:.5g}", figure.before) : "-",
                          has ? fmt::format("{:.5g}", figure.after) : "-", has ? fmt::format("{:+.2f} %", change) : "-",
                          fmt::format("{:.2g}", figure.p), verdict});
  }
  return table;
}

}  // namespace millrace::record
