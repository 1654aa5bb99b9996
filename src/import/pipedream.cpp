// Lines of a profile become cost operators in depth-first topological order.
#include "import/pipedream.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "config/number.h"
#include "config/text_check.h"
#include "import/names.h"
#include "import/nodes.h"

namespace millrace::import {
namespace {

using config::Where;

constexpr std::string_view kSeparator = " -- ";
const std::vector<std::string> kFields{"forward_compute_time", "backward_compute_time", "activation_size",
                                       "parameter_size"};

struct Layer {
  std::string id;
  bool is_input;
  OpFigures figures;
  int line;
};

struct Profile {
  std::vector<Layer> layers;
  std::unordered_map<std::string, std::size_t> positions;  // by id
  Successors successors;
  std::map<std::pair<std::size_t, std::size_t>, int> edges;  // with the line of each
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(end + separator.size());
  }
  parts.push_back(trimmed(text));
  return parts;
}

double read_number(std::string_view written, std::string_view field, double limit, const Where& line) {
  const auto number = config::parse_real(written);
  if (number.fault != config::NumberFault::none || number.value < 0 || number.value >= limit) {
    config::refuse_at(
        line, fmt::format("{}: found '{}', allowed: number, at least 0{}", field, written, config::hint(number.fault)));
  }
  return number.value;
}

constexpr double kMostBytes = 0x1p62;  // the sums of lists stay below 63 bits
constexpr double kMostMilliseconds = 1e300;

// A number, or numbers as in [6160384.0; 131072.0].
double read_activations(std::string_view written, std::string_view field, const Where& line) {
  if (!written.starts_with('[')) return read_number(written, field, kMostBytes, line);
  if (!written.ends_with(']')) config::refuse_at(line, fmt::format("{}: a '[' has no ']'", field));
  double sum = 0;
  for (const std::string_view part : split(written.substr(1, written.size() - 2), ";")) {
    sum += read_number(part, field, kMostBytes, line);
    if (sum >= kMostBytes) config::refuse_at(line, fmt::format("{}: the sum of the list is too large", field));
  }
  return sum;
}

OpFigures read_figures(std::string_view written, const Where& line) {
  std::array<std::string_view, 4> values{};
  for (const std::string_view part : split(written, ",")) {
    const std::size_t equals = part.find('=');
    const std::string name(trimmed(part.substr(0, equals)));
    const auto known = std::find(kFields.begin(), kFields.end(), name);
    if (known == kFields.end()) config::refuse_at(line, unknown_name("field", name, kFields));
    if (equals == std::string_view::npos) config::refuse_at(line, fmt::format("{}: '=' and a value must follow", name));
    std::string_view& value = values[static_cast<std::size_t>(known - kFields.begin())];
    if (!value.empty()) config::refuse_at(line, fmt::format("{}: given twice", name));
    value = trimmed(part.substr(equals + 1));
    if (value.empty()) config::refuse_at(line, fmt::format("{}: found nothing, allowed: number, at least 0", name));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].empty()) config::refuse_at(line, fmt::format("{} must be given", kFields[i]));
  }
  constexpr double kMillisecondsPerSecond = 1e3;
  OpFigures figures;
  figures.forward_s = read_number(values[0], kFields[0], kMostMilliseconds, line) / kMillisecondsPerSecond;
  figures.backward_input_s = read_number(values[1], kFields[1], kMostMilliseconds, line) / kMillisecondsPerSecond;
  figures.output_bytes = whole_bytes(read_activations(values[2], kFields[2], line));
  figures.saved_bytes = figures.output_bytes;
  figures.parameter_bytes = whole_bytes(read_number(values[3], kFields[3], kMostBytes, line));
  if (figures.parameter_bytes > 0) {
    figures.backward_input_s /= 2;
    figures.backward_weight_s = figures.backward_input_s;
  }
  return figures;
}

// Parts: id, description, figures; a profile that PipeDream has split adds the stage, which is ours to choose.
void read_layer(const std::vector<std::string_view>& parts, const Where& line, Profile& profile) {
  const std::string id(parts[0]);
  if (id.empty()) config::refuse_at(line, "the name of the node is missing");
  const auto [entry, fresh] = profile.positions.emplace(id, profile.layers.size());
  if (!fresh) {
    config::refuse_at(
        line, fmt::format("node '{}' is given twice, first in line {}", id, profile.layers[entry->second].line));
  }
  profile.layers.push_back({id, parts[1].starts_with("Input"), read_figures(parts[2], line), line.line});
  profile.successors.emplace_back();
}

void read_edge(const std::vector<std::string_view>& parts, const Where& line, Profile& profile) {
  std::array<std::size_t, 2> ends{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto entry = profile.positions.find(std::string(parts[i]));
    if (entry == profile.positions.end()) {
      config::refuse_at(line, fmt::format("found node '{}', allowed: one that has a line of its own above", parts[i]));
    }
    ends[i] = entry->second;
  }
  if (ends[0] == ends[1]) {
    config::refuse_at(line, fmt::format("an edge from node '{}' to itself, allowed: between two nodes", parts[0]));
  }
  if (!profile.edges.emplace(std::pair(ends[0], ends[1]), line.line).second) {
    config::refuse_at(line, fmt::format("the edge {} -- {} is given twice", parts[0], parts[1]));
  }
  profile.successors[ends[0]].push_back(ends[1]);
}

Profile read_profile(std::string_view text, const std::string& file) {
  Profile profile;
  Where line{std::make_shared<config::Source>(config::Source{file, {}, true}), 0, 1};
  config::check_characters(text, line.source, "PipeDream profile");
  while (!text.empty()) {
    const std::string_view written = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), written.size() + 1));
    ++line.line;
    if (trimmed(written).empty()) continue;
    const std::vector<std::string_view> parts = split(trimmed(written), kSeparator);
    if (parts.size() == 2) {
      read_edge(parts, line, profile);
    } else if (parts.size() == 3 || (parts.size() == 4 && parts[3].starts_with("stage_id="))) {
      read_layer(parts, line, profile);
    } else {
      config::refuse_at(line, fmt::format("found {} parts between ' -- ', allowed: `node -- description -- figures` or "
                                          "`node -- node`",
                                          parts.size()));
    }
  }
  if (profile.layers.empty()) throw InvalidInput(fmt::format("{}: found no nodes, allowed: at least one", file));
  std::vector<std::string> ids;
  for (const Layer& layer : profile.layers) ids.push_back(layer.id);
  const std::string cycle = cycle_text(profile.successors, ids);
  if (!cycle.empty()) {
    const std::vector<std::size_t> nodes = find_cycle(profile.successors);
    line.line = 0;  // of the edge that closes the cycle: the last of them
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      line.line = std::max(line.line, profile.edges.at({nodes[i], nodes[(i + 1) % nodes.size()]}));
    }
    config::refuse_at(line, fmt::format("nodes depend on each other: {}; allowed: no cycles", cycle));
  }
  return profile;
}

double batch_of_name(const std::string& file) {
  constexpr std::string_view kMark = "pbs-";
  const std::string name = std::filesystem::path(file).filename().string();
  const std::size_t mark = name.find(kMark);
  if (mark == std::string::npos) return 1;
  std::int64_t batch = 0;
  const char* first = name.data() + mark + kMark.size();
  const auto result = std::from_chars(first, name.data() + name.size(), batch);
  if (result.ec != std::errc() || batch < 1) {
    throw InvalidInput(
        fmt::format("{}: no number of samples after 'pbs-' in the name; set model.options.profile_batch", file));
  }
  return static_cast<double>(batch);
}

}  // namespace

Graph read_pipedream(std::string_view text, const std::string& file, std::optional<double> profile_batch) {
  const Profile profile = read_profile(text, file);
  const std::vector<std::size_t> order = depth_first_order(profile.successors);
  std::vector<std::size_t> position(order.size());
  std::vector<NodeName> names;
  for (std::size_t i = 0; i < order.size(); ++i) {
    position[order[i]] = i;
    names.push_back({profile.layers[order[i]].id, std::to_string(i)});
  }
  const std::vector<std::string> valid = operator_names(names);
  LayerProfile extra{.profile_batch = profile_batch ? *profile_batch : batch_of_name(file), .is_input = {}};
  std::vector<CostOperator> operators(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Layer& layer = profile.layers[order[i]];
    operators[i].name = valid[i];
    operators[i].figures = layer.figures;
    extra.is_input.push_back(layer.is_input);
    for (const std::size_t next : profile.successors[order[i]]) operators[position[next]].reads.push_back(i);
  }
  return build_graph(file, operators, {.format = "pipedream", .extra = std::move(extra)});
}

bool is_pipedream(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!trimmed(line).empty()) return line.find(kSeparator) != std::string_view::npos;
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return false;
}

}  // namespace millrace::import
