// Draws timelines and stage maps.
#include "record/page/pictures.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/count.h"
#include "base/text.h"
#include "config/document.h"
#include "config/matrix.h"

namespace millrace::record {
namespace {

struct Box {
  std::int64_t rank = 0;
  std::string kind, text;
  double start = 0, end = 0;
};

constexpr std::size_t kMostBoxes = 4000;  // of a timeline: 200 bytes each

std::vector<Box> boxes_of(const DataTable& table) {
  std::vector<Box> boxes;
  if (table.rows.empty()) return boxes;
  const std::size_t rank = table.at("rank"), kind = table.at("kind"), stage = table.at("stage"),
                    micro_batch = table.at("micro_batch"), start = table.at("start_s"), end = table.at("end_s");
  for (const auto& row : table.rows) {
    if (boxes.size() == kMostBoxes) break;
    const double from = number_of(row[start]).value_or(0), to = number_of(row[end]).value_or(0);
    if (to <= from) continue;
    const std::string what = to_text(row[kind]);
    boxes.push_back({static_cast<std::int64_t>(number_of(row[rank]).value_or(0)), what,
                     fmt::format("{}, stage {}, micro-batch {}: {}", what, to_text(row[stage]),
                                 to_text(row[micro_batch]), format(Seconds(to - from))),
                     from, to});
  }
  return boxes;
}

// The first colours of the charts' series, by what the kinds have in common.
const char* class_of(const std::string& kind) {
  if (kind.starts_with("forward") || kind.starts_with("recompute")) return "f";
  if (kind.starts_with("backward")) return kind.find("weight") == std::string::npos ? "b" : "w";
  return kind.find("update") == std::string::npos ? "m" : "u";
}

// What the colours of a timeline mean: those that it has.
std::string kinds_html(const std::vector<Box>& boxes) {
  constexpr std::pair<const char*, const char*> kNames[]{
      {"f", "forward"}, {"b", "backward"}, {"w", "weight gradients"}, {"u", "updates"}, {"m", "messages"}};
  std::string html = "<ul class=\"kinds\">";
  for (const auto& [kind, name] : kNames) {
    const bool there = std::any_of(boxes.begin(), boxes.end(), [&, wanted = std::string_view(kind)](const Box& box) {
      return class_of(box.kind) == wanted;
    });
    if (there) html += fmt::format("<li><i class=\"{}\"></i>{}</li>", kind, name);
  }
  return html + "</ul>";
}

std::string ops_text(const config::Node* ops) { return ops == nullptr ? "" : escaped(config::one_line(*ops)); }

std::string stage_box(std::size_t index, const config::Node& stage) {
  const config::Node* devices = stage.find("devices");
  const std::size_t count = devices == nullptr ? 0 : devices->items.size();
  return fmt::format("<li><b>stage {}</b><span>{}</span><span>{} {}</span></li>", index, ops_text(stage.find("ops")),
                     counted(static_cast<std::int64_t>(count), "device"),
                     devices == nullptr ? "" : escaped(config::one_line(*devices)));
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string timeline_html(const Results& results) {
  const std::vector<Box> boxes = boxes_of(results.instructions);
  if (boxes.empty()) return "";
  double first = std::numeric_limits<double>::max(), last = 0;
  std::int64_t ranks = 0;
  for (const Box& box : boxes) {
    first = std::min(first, box.start);
    last = std::max(last, box.end);
    ranks = std::max(ranks, box.rank + 1);
  }
  constexpr double kWidth = 1000, kLane = 20;
  const double scale = kWidth / (last - first);
  const std::string name = escaped(results.file.stem().string());
  std::string html = fmt::format(
      "<figure>\n<figcaption><h3>Timeline: {0}</h3><p>One iteration of {1}, {2}; a lane a rank, from rank 0 down. "
      "The rest is waiting.</p>{6}</figcaption>\n"
      "<p class=\"zoom\"><button type=\"button\" data-zoom=\"0.5\">Closer</button> <button type=\"button\" "
      "data-zoom=\"2\">Further</button> <button type=\"button\" data-zoom=\"0\">All</button></p>\n"
      "<svg class=\"timeline\" role=\"img\" tabindex=\"0\" aria-label=\"Timeline of {1}. Plus and minus zoom, arrows "
      "move.\" viewBox=\"0 0 {3:g} {4:g}\" preserveAspectRatio=\"none\" style=\"height:{5}rem\">\n",
      name, counted(ranks, "rank"), format(Seconds(last - first)), kWidth, kLane * static_cast<double>(ranks),
      std::min<std::int64_t>(40, 2 * ranks + 1), kinds_html(boxes));
  for (const Box& box : boxes) {
    html += fmt::format(
        "<rect class=\"{}\" x=\"{:.3f}\" y=\"{:g}\" width=\"{:.3f}\" height=\"{:g}\"><title>rank {}: "
        "{}</title></rect>\n",
        class_of(box.kind), (box.start - first) * scale, static_cast<double>(box.rank) * kLane + 1,
        (box.end - box.start) * scale, kLane - 2, box.rank, escaped(box.text));
  }
  return html + "</svg>\n</figure>\n";
}

std::string stage_map_html(const Results& results) {
  if (results.plan.empty()) return "";
  config::Problems problems;
  const config::Node plan = config::load_text(results.plan, nullptr, problems);
  const config::Node* pipelines = plan.is_map() ? plan.find("pipelines") : nullptr;
  if (pipelines == nullptr || !pipelines->is_sequence()) return "";
  const config::Node* model = plan.find("model");
  std::string html = fmt::format(
      "<figure>\n<figcaption><h3>Stages: {}</h3><p>{}{}; activations go from stage to stage to the right, gradients "
      "back."
      "</p></figcaption>\n",
      escaped(results.file.stem().string()), results.sweep ? "The cell with the most throughput, " : "",
      model == nullptr ? "its network" : escaped(model->text));
  for (std::size_t p = 0; p < pipelines->items.size(); ++p) {
    const config::Node* stages = pipelines->items[p].find("stages");
    if (stages == nullptr || !stages->is_sequence()) continue;
    html += fmt::format("<ol class=\"stages\" aria-label=\"Stages of pipeline {}\">", p);
    for (std::size_t s = 0; s < stages->items.size(); ++s) html += stage_box(s, stages->items[s]);
    html += "</ol>\n";
  }
  return html + "</figure>\n";
}

}  // namespace millrace::record
