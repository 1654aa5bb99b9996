// A chart as data: what is drawn, what it is read out as, and the table behind it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace millrace::record {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string label;  ///< what the point is, for pointing and for readers
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;
  bool line = false;  ///< joined, in a chart of points
};

enum class ChartKind { points, lines, bars, stacked };

struct Chart {
  std::string id;
  std::string title;
  std::string text;  ///< one sentence on what it shows and how it was made
  ChartKind kind = ChartKind::points;
  std::string x_title;
  std::string y_title;
  std::vector<std::string> categories;  ///< bars and stacked: of the x axis; a point's x is the index
  std::vector<ChartSeries> series;
  bool logarithmic = false;  ///< both axes
};

}  // namespace millrace::record
