// The matrix of a sweep (INTERFACES 2): which settings each cell makes, and in which order the cells come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/node.h"
#include "config/reader.h"

namespace millrace::config {

/// A key path as in `--set`, and the value that a cell puts there.
struct Setting {
  std::string path;
  Node value;
};

/// All settings of one cell, or of one point of an axis: linked keys make one point together.
using Settings = std::vector<Setting>;

/// Leaves out the combinations in which every one of its settings is met.
struct Exclusion {
  Settings settings;
  std::string reason;  ///< for the listing of the suite; may be empty
  Where where;
};

struct Matrix {
  std::vector<std::vector<Settings>> axes;
  std::vector<Exclusion> exclude;
  std::vector<Settings> include;
  Settings small;  ///< what a cell of the small size has; empty: there is no small size
};

/// Reads the keys `matrix` (key: values), `linked` (a list of maps whose values move together), `exclude` and `include`
/// (lists of maps, key: value), and `small` (a map of keys and the values that the small size keeps). Problems: an
/// empty axis, a key on two axes, a key within another one, linked keys with different numbers of values, an exclusion
/// by a key that is on no axis, more than kMostCells combinations.
Matrix read_matrix(Reader& reader);

constexpr std::int64_t kMostCells = 1'000'000;

struct Expansion {
  std::vector<Settings> cells;
  std::vector<std::int64_t> excluded;  ///< by exclusion: the combinations that it was the first to leave out
};

/// The product of the axes, the first one varying slowest, without what is excluded; then what is included, which no
/// exclusion touches. A matrix without axes has one cell that sets nothing, unless it includes some.
Expansion expand(const Matrix& matrix);

/// Whether an exclusion's value names the value of an axis: the same value; one element of a list of values; the word
/// `dp` for `{name: dp, order: best}`.
bool names_value(const Node& wanted, const Node& value);

/// Whether a cell has every one of the wanted settings, as names_value() says.
bool has_settings(const Settings& cell, const Settings& wanted);

/// A value on one line, for tables: "4", "dp", "{name: dp, order: best}", "[1, 2]".
std::string one_line(const Node& value);

/// Every key path, in the order of the axes, then those that only inclusions set.
std::vector<std::string> setting_paths(const Matrix& matrix);

}  // namespace millrace::config
