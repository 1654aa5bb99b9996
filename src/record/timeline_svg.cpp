// Draws lanes, boxes, an axis in round steps and a legend.
#include "record/timeline_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"

namespace millrace::record {
namespace {

constexpr double kWidth = 1000, kLeft = 150, kRight = 20, kTop = 56, kLane = 34, kGap = 8;

struct Style {
  const char* label;
  const char* fill;
  const char* ink;
};

constexpr Style kForward{"forward", "#4c78a8", "#ffffff"};
constexpr Style kBackward{"backward", "#59a14f", "#ffffff"};
constexpr Style kWeight{"weight gradient", "#a0cbe8", "#1b1b1b"};
constexpr Style kReduce{"all-reduce", "#e15759", "#ffffff"};
constexpr Style kUpdate{"update", "#b07aa1", "#ffffff"};
constexpr Style kInput{"input gradient", "#8cd17d", "#1b1b1b"};
constexpr Style kRecompute{"recompute", "#f1ce63", "#1b1b1b"};
constexpr Style kTensor{"tensor collective", "#ff9d9a", "#1b1b1b"};

std::optional<Style> style_of(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::forward:
      return kForward;
    case InstructionKind::backward:
      return kBackward;
    case InstructionKind::backward_input:
      return kInput;
    case InstructionKind::recompute:
      return kRecompute;
    case InstructionKind::all_reduce:
    case InstructionKind::all_gather:
    case InstructionKind::reduce_scatter:
    case InstructionKind::all_to_all:
      return kTensor;
    case InstructionKind::backward_weight:
      return kWeight;
    case InstructionKind::reduce_gradients:
    case InstructionKind::gather_weights:
      return kReduce;
    case InstructionKind::update_weights:
      return kUpdate;
    default:
      return std::nullopt;
  }
}

bool is_thin(InstructionKind kind) {
  return kind == InstructionKind::reduce_gradients || kind == InstructionKind::update_weights ||
         kind == InstructionKind::gather_weights;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else out += c;
  }
  return out;
}

// 1, 2 or 5 times a power of ten, so that there are at most ten marks.
double round_step(double span) {
  const double rough = span / 10;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

// Which stages a rank computes, "rank 2 · p1 s0, s4": pipelines by number, named once each.
std::string lane_label(const Program& program, int rank) {
  std::string label = fmt::format("rank {} ·", rank);
  int pipeline = -1;
  for (const ProgramStage& stage : program.stages) {
    if (std::find(stage.ranks.begin(), stage.ranks.end(), rank) == stage.ranks.end()) continue;
    if (stage.ref.pipeline != pipeline) label += fmt::format(" p{}", stage.ref.pipeline);
    label += fmt::format("{} s{}", stage.ref.pipeline == pipeline ? "," : "", stage.ref.stage);
    pipeline = stage.ref.pipeline;
  }
  return label;
}

class Canvas {
 public:
  Canvas(std::size_t lanes, double span) : scale_((kWidth - kLeft - kRight) / span), span_(span) {
    height_ = kTop + static_cast<double>(lanes) * (kLane + kGap) + 78;
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        kWidth, height_);
  }

  static double lane_top(int rank) { return kTop + rank * (kLane + kGap); }
  double x(double seconds) const { return kLeft + seconds * scale_; }
  double axis_y() const { return height_ - 70; }
  double height() const { return height_; }

  void text(double at_x, double at_y, std::string_view words, std::string_view attributes = "") {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", at_x, at_y, attributes, escaped(words));
  }
  void box(double at_x, double at_y, double width, double height, std::string_view fill) {
    svg_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" rx=\"2\" fill=\"{}\"/>\n",
                        at_x, at_y, std::max(0.4, width), height, fill);
  }

  void lane(const Program& program, int rank) {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#eef1f4\"/>\n",
                        kLeft, lane_top(rank), span_ * scale_, kLane);
    text(kLeft - 8, lane_top(rank) + kLane / 2 + 4, lane_label(program, rank),
         "text-anchor=\"end\" font-size=\"10\" fill=\"#333\"");
  }

  void row(const TimelineRow& row) {
    const std::optional<Style> style = style_of(row.instruction.kind);
    const double length = (row.end - row.start).value();
    if (!style || length <= 0) return;
    const bool thin = is_thin(row.instruction.kind);
    const double top = lane_top(row.rank), left = x(row.start.value()), width = length * scale_;
    box(left, thin ? top + kLane : top, width - 0.6, thin ? kGap - 2 : kLane, style->fill);
    if (thin || width < 14) return;
    text(left + width / 2, top + kLane / 2 + 4, std::to_string(row.instruction.micro_batch),
         fmt::format("text-anchor=\"middle\" fill=\"{}\"", style->ink));
  }

  void axis() {
    const double step = round_step(span_);
    for (double at = 0; at <= span_ * 1.0001; at += step) {
      svg_ += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#c8ccd0\" "
          "stroke-width=\"0.6\"/>\n",
          x(at), kTop - 4, axis_y());
      text(x(at), axis_y() + 14, format(Seconds(at)), "text-anchor=\"middle\" font-size=\"10\" fill=\"#555\"");
    }
  }

  // Of the kinds that every program has, and of those that this one has.
  void legend(double at_y, const Timeline& timeline) {
    double at_x = kLeft;
    for (const Style& style : {kForward, kBackward, kWeight, kReduce, kUpdate}) {
      entry(at_x, at_y, style);
      at_x += 130;
    }
    at_x = kLeft;
    for (const Style& style : {kRecompute, kInput, kTensor}) {
      const bool has = std::any_of(timeline.rows.begin(), timeline.rows.end(), [&](const TimelineRow& row) {
        const std::optional<Style> its = style_of(row.instruction.kind);
        return its && row.end > row.start && std::string_view(its->label) == style.label;
      });
      if (!has) continue;
      entry(at_x, at_y - 18, style);
      at_x += 130;
    }
  }

  void entry(double at_x, double at_y, const Style& style) {
    box(at_x, at_y - 10, 12, 12, style.fill);
    text(at_x + 17, at_y, style.label, "fill=\"#333\"");
  }

  std::string finish() { return svg_ + "</svg>\n"; }

 private:
  double scale_;
  double span_;
  double height_;
  std::string svg_;
};

}  // namespace

std::string timeline_svg(const Program& program, const Timeline& timeline, const SvgOptions& options) {
  double span = 0;
  for (const TimelineRow& row : timeline.rows) span = std::max(span, row.end.value());
  Canvas canvas(program.ranks.size(), span > 0 ? span : 1.0);
  canvas.text(kLeft, 22, options.title, "font-size=\"16\" font-weight=\"bold\" fill=\"#222\"");
  canvas.text(kLeft, 40, options.footer, "fill=\"#555\"");
  canvas.axis();
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) canvas.lane(program, rank);
  for (const TimelineRow& row : timeline.rows) canvas.row(row);
  canvas.legend(canvas.height() - 14, timeline);
  return canvas.finish();
}

}  // namespace millrace::record
