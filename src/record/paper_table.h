// Published figures beside ours: published | ours | setting | kind | verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/data_table.h"
#include "record/table_text.h"

namespace millrace::record {

/// One figure of a published table and how ours is read from the cells of a sweep.
struct PublishedFigure {
  std::string table;     ///< of the paper or of ours
  std::string row;       ///< what the figure is about
  std::string select;    ///< cells of ours: "plan.partitioner=hippie; model.name=vgg16"
  std::string baseline;  ///< likewise, what ours is held against; "" for none
  std::string metric;    ///< a column
  std::string form;      ///< value; ratio, change or efficiency (ratio over the ratio of devices) against the baseline
  std::optional<double> published;  ///< none: nobody printed one; ours stands alone
  std::string better;               ///< higher, lower, or equal
  double tolerance = 0;             ///< a fraction of the published figure
  std::string setting;              ///< ours, where it differs; "" : the selection
  std::string source;               ///< of the published figure
  std::string why;                  ///< why ours differs, where it does
};

/// Reads the sheet: a CSV file with these names as header; `form` is value, `better` higher, `tolerance` 0 where the
/// cell is empty or the column is missing. \throws InvalidInput  all that is wrong with it, cited as NAME:LINE:COLUMN.
std::vector<PublishedFigure> read_published(const std::string& csv, const std::string& name);

struct PaperRow {
  PublishedFigure figure;
  std::optional<double> ours;
  std::string kind;
  std::string verdict;  ///< "reached", "not reached", "nothing published", "no result: WHY"
};

/// \throws InvalidInput  a selection of cells that differ in more than their repetition.
std::vector<PaperRow> paper_rows(const std::vector<PublishedFigure>& figures, const DataTable& cells,
                                 const std::vector<std::string>& axes);

TextTable readable(const std::vector<PaperRow>& rows);

}  // namespace millrace::record
