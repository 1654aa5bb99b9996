// Gives each column to what fills most of it.
#include "record/timeline_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace millrace::record {
namespace {

// 0: nothing is drawn.
char mark(const Instruction& instruction) {
  const int micro_batch = std::max(0, instruction.micro_batch);
  switch (instruction.kind) {
    case InstructionKind::forward:
      return static_cast<char>('0' + micro_batch % 10);
    case InstructionKind::backward:
    case InstructionKind::backward_input:
      return static_cast<char>('a' + micro_batch % 10);
    case InstructionKind::backward_weight:
      return 'w';
    case InstructionKind::recompute:
      return 'r';
    case InstructionKind::update_weights:
      return 'u';
    default:
      return 0;
  }
}

class Lane {
 public:
  Lane(int width, double span) : marks_(static_cast<std::size_t>(width), '.'), filled_(marks_.size()), span_(span) {}

  void add(char mark, double start, double end) {
    const double column = span_ / static_cast<double>(marks_.size());
    const auto last = static_cast<double>(marks_.size()) - 1;
    const auto from = static_cast<std::size_t>(std::clamp(std::floor(start / column), 0.0, last));
    const auto to = static_cast<std::size_t>(std::clamp(std::floor(end / column), 0.0, last));
    for (std::size_t i = from; i <= to; ++i) {
      const double left = column * static_cast<double>(i);
      const double share = (std::min(end, left + column) - std::max(start, left)) / column;
      // Less than half a column is left out.
      if (share <= filled_[i] || share < 0.5) continue;
      filled_[i] = share;
      marks_[i] = mark;
    }
  }

  const std::string& text() const { return marks_; }

 private:
  std::string marks_;
  std::vector<double> filled_;
  double span_;
};

}  // namespace

std::string timeline_text(const Program& program, const Timeline& timeline, int width) {
  double span = 0;
  for (const TimelineRow& row : timeline.rows) span = std::max(span, row.end.value());
  std::vector<Lane> lanes(program.ranks.size(), Lane(width, span > 0 ? span : 1.0));
  for (const TimelineRow& row : timeline.rows) {
    const char with = mark(row.instruction);
    if (with != 0 && row.end > row.start) {
      lanes[static_cast<std::size_t>(row.rank)].add(with, row.start.value(), row.end.value());
    }
  }
  std::string text;
  for (std::size_t rank = 0; rank < lanes.size(); ++rank) {
    text += fmt::format("rank {:>4} |{}|\n", rank, lanes[rank].text());
  }
  return text + fmt::format("{:>10}0{:>{}}\n", "", format(Seconds(span)), width + 1);
}

}  // namespace millrace::record
