// Reads and expands the matrix of a sweep.
#include "config/matrix.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace millrace::config {
namespace {

// "plan" and "plan.stages" on two axes: which comes first would decide what is kept.
bool is_within(const std::string& inner, const std::string& outer) {
  return inner.size() > outer.size() && inner.compare(0, outer.size(), outer) == 0 &&
         (inner[outer.size()] == '.' || inner[outer.size()] == '[');
}

class MatrixReader {
 public:
  explicit MatrixReader(Reader& reader) : reader_(reader) {}

  Matrix read() {
    read_axes();
    read_linked();
    check_size();
    read_exclusions();
    if (const Field include = reader_.field("include")) {
      for (const Field& entry : include.items()) matrix_.include.push_back(settings_of(entry));
    }
    if (const Field small = reader_.field("small")) matrix_.small = settings_of(small);
    return std::move(matrix_);
  }

 private:
  bool values_of(const Field& field) const {
    if (field.items().empty()) {
      if (field.is_list()) field.refuse("found an empty list, allowed: at least one value");
      return false;
    }
    return true;
  }

  void note_key(const std::string& path, const Field& field) {
    for (const auto& [other, where] : places_) {
      if (other == path) {
        field.refuse(fmt::format("this key is on another axis already, {}", to_text(where)));
      } else if (is_within(path, other) || is_within(other, path)) {
        field.refuse(
            fmt::format("'{}' ({}) is on another axis, and one of the two is within the other", other, to_text(where)));
      }
    }
    places_.emplace(path, field.where());
  }

  void read_axes() {
    Reader axes(reader_.field("matrix"));
    for (const auto& [path, field] : axes.entries()) {
      note_key(path, field);
      if (!values_of(field)) continue;
      std::vector<Settings> points;
      for (const Node& value : field.node()->items) points.push_back({{path, value}});
      matrix_.axes.push_back(std::move(points));
    }
  }

  void read_linked() {
    const Field linked = reader_.field("linked");
    if (!linked) return;
    for (const Field& entry : linked.items()) {
      Reader keys(entry);
      std::vector<Settings> points;
      std::string first;
      for (const auto& [path, field] : keys.entries()) {
        note_key(path, field);
        if (!values_of(field)) continue;
        const std::vector<Node>& values = field.node()->items;
        if (first.empty()) {
          first = path;
          points.resize(values.size());
        }
        if (values.size() != points.size()) {
          field.refuse(fmt::format("found {} values, allowed: {}, as many as '{}' that it is linked with",
                                   values.size(), points.size(), first));
          continue;
        }
        for (std::size_t i = 0; i < values.size(); ++i) points[i].push_back({path, values[i]});
      }
      if (!points.empty()) matrix_.axes.push_back(std::move(points));
    }
  }

  void check_size() {
    std::int64_t cells = 1;
    for (const auto& axis : matrix_.axes) {
      cells *= static_cast<std::int64_t>(axis.size());
      if (cells <= kMostCells) continue;
      reader_.refuse(fmt::format("the matrix has more than {} combinations", kMostCells));
      matrix_.axes.clear();
      return;
    }
  }

  void read_exclusions() {
    const Field exclude = reader_.field("exclude");
    if (!exclude) return;
    std::vector<std::string> on_axes;
    for (const auto& place : places_) on_axes.push_back(place.first);
    for (const Field& entry : exclude.items()) {
      Exclusion exclusion;
      exclusion.where = entry.where();
      Reader keys(entry);
      for (const auto& [path, field] : keys.entries()) {
        if (path == "reason") {
          exclusion.reason = field.as(Text{});
        } else if (places_.count(path) == 0) {
          field.refuse(unknown_name("key of an axis", path, on_axes));
        } else {
          exclusion.settings.push_back({path, *field.node()});
        }
      }
      if (exclusion.settings.empty()) {
        entry.refuse("found no key of an axis: this would exclude every cell");
        continue;
      }
      matrix_.exclude.push_back(std::move(exclusion));
    }
  }

  static Settings settings_of(const Field& entry) {
    Settings settings;
    Reader keys(entry);
    for (const auto& [path, field] : keys.entries()) settings.push_back({path, *field.node()});
    if (settings.empty()) entry.refuse("found no key, allowed: the settings of a further cell");
    return settings;
  }

  Reader& reader_;
  Matrix matrix_;
  std::map<std::string, Where> places_;
};

bool same_value(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    const Node* other = a.is_map() ? b.find(a.keys[i].text) : &b.items[i];
    if (other == nullptr || !same_value(a.items[i], *other)) return false;
  }
  return true;
}

}  // namespace

Matrix read_matrix(Reader& reader) { return MatrixReader(reader).read(); }

bool names_value(const Node& wanted, const Node& value) {
  if (same_value(wanted, value)) return true;
  if (wanted.is_sequence()) {
    return std::any_of(wanted.items.begin(), wanted.items.end(),
                       [&](const Node& one) { return !one.is_sequence() && names_value(one, value); });
  }
  if (!wanted.is_scalar() || !value.is_map()) return false;
  const Node* name = value.find("name");
  return name != nullptr && name->is_scalar() && name->text == wanted.text;
}

bool has_settings(const Settings& cell, const Settings& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const Setting& one) {
    return std::any_of(cell.begin(), cell.end(), [&](const Setting& setting) {
      return setting.path == one.path && names_value(one.value, setting.value);
    });
  });
}

Expansion expand(const Matrix& matrix) {
  Expansion result;
  result.excluded.resize(matrix.exclude.size(), 0);
  std::vector<std::size_t> at(matrix.axes.size(), 0);  // an odometer: the last axis turns fastest
  bool more = !matrix.axes.empty() || matrix.include.empty();
  while (more) {
    Settings cell;
    for (std::size_t a = 0; a < at.size(); ++a) {
      const Settings& point = matrix.axes[a][at[a]];
      cell.insert(cell.end(), point.begin(), point.end());
    }
    const auto met = std::find_if(matrix.exclude.begin(), matrix.exclude.end(),
                                  [&](const Exclusion& exclusion) { return has_settings(cell, exclusion.settings); });
    if (met == matrix.exclude.end()) {
      result.cells.push_back(std::move(cell));
    } else {
      ++result.excluded[static_cast<std::size_t>(met - matrix.exclude.begin())];
    }
    std::size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == matrix.axes[axis - 1].size()) at[--axis] = 0;
    more = axis > 0;
  }
  result.cells.insert(result.cells.end(), matrix.include.begin(), matrix.include.end());
  return result;
}

std::string one_line(const Node& value) {
  if (value.is_scalar()) return value.text;
  if (value.is_null()) return "null";
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    parts.push_back((value.is_map() ? value.keys[i].text + ": " : "") + one_line(value.items[i]));
  }
  return value.is_map() ? "{" + join(parts) + "}" : "[" + join(parts) + "]";
}

std::vector<std::string> setting_paths(const Matrix& matrix) {
  std::vector<std::string> paths;
  const auto add = [&](const Settings& settings) {
    for (const Setting& setting : settings) {
      if (std::find(paths.begin(), paths.end(), setting.path) == paths.end()) paths.push_back(setting.path);
    }
  };
  for (const auto& axis : matrix.axes) add(axis.front());
  for (const Settings& settings : matrix.include) add(settings);
  return paths;
}

}  // namespace millrace::config
