// Lets names and ranges claim their operators first, then globs what is left.
#include "plan/op_patterns.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/text.h"

namespace millrace::plan {
namespace {

constexpr std::string_view kRange = " .. ";

class Resolution {
 public:
  Resolution(const Graph& graph, const std::vector<std::vector<std::string>>& stages)
      : graph_(graph), stages_(stages), stage_of_(static_cast<std::size_t>(graph.size()), kNone) {}

  ResolvedStages run() {
    each_item(false);
    by_name_ = stage_of_;
    each_item(true);
    result_.ops.resize(stages_.size());
    for (OpId op = 0; op < graph_.size(); ++op) {
      const std::size_t stage = stage_of_[static_cast<std::size_t>(op)];
      if (stage != kNone) result_.ops[stage].push_back(op);
    }
    std::stable_sort(result_.faults.begin(), result_.faults.end(), [](const PatternFault& a, const PatternFault& b) {
      return std::pair(a.stage, a.item) < std::pair(b.stage, b.item);
    });
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void each_item(bool globs) {
    for (stage_ = 0; stage_ < stages_.size(); ++stage_) {
      for (item_ = 0; item_ < stages_[stage_].size(); ++item_) {
        const std::string& text = stages_[stage_][item_];
        const bool exact = graph_.find_op(text) >= 0;
        const bool is_glob = !exact && text.find_first_of("*?") != std::string::npos && !is_range(text);
        if (globs != is_glob) continue;
        if (globs) {
          glob(text);
        } else if (!exact && is_range(text)) {
          range(text);
        } else {
          name(text);
        }
      }
    }
  }

  static bool is_range(std::string_view text) { return text.find(kRange) != std::string_view::npos; }

  void fault(std::string text) { result_.faults.push_back({stage_, item_, std::move(text)}); }

  OpId find(const std::string& word) {
    const OpId op = graph_.find_op(word);
    if (op < 0) {
      std::vector<std::string> names;
      for (const Operator& node : graph_.operators()) names.push_back(node.name);
      const auto nearest = nearest_name(word, names);
      fault(fmt::format("'{}' matches no operator of '{}'{}", word, graph_.name(),
                        nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : ""));
    }
    return op;
  }

  void claim(OpId op, std::string_view how) {
    std::size_t& stage = stage_of_[static_cast<std::size_t>(op)];
    if (stage == kNone) {
      stage = stage_;
    } else if (stage != stage_) {
      fault(fmt::format("operator '{}' is in stage {} already ({})", graph_.op(op).name, stage, how));
    } else if (how != "glob") {
      fault(fmt::format("operator '{}' is twice in this stage", graph_.op(op).name));
    }
  }

  void name(const std::string& text) {
    const OpId op = find(text);
    if (op >= 0) claim(op, "by name");
  }

  void range(const std::string& text) {
    const std::size_t dots = text.find(kRange);
    const OpId first = find(text.substr(0, dots));
    const OpId last = find(text.substr(dots + kRange.size()));
    if (first < 0 || last < 0) return;
    if (last < first) {
      fault(fmt::format("range '{}' is backwards: '{}' comes after '{}' in canonical order", text,
                        graph_.op(first).name, graph_.op(last).name));
      return;
    }
    for (OpId op = first; op <= last; ++op) claim(op, "by range");
  }

  void glob(const std::string& text) {
    bool matched = false;
    for (OpId op = 0; op < graph_.size(); ++op) {
      if (!matches_glob(text, graph_.op(op).name)) continue;
      matched = true;
      if (by_name_[static_cast<std::size_t>(op)] == kNone) claim(op, "glob");
    }
    if (!matched) find(text);  // says so, with the nearest name
  }

  const Graph& graph_;
  const std::vector<std::vector<std::string>>& stages_;
  std::vector<std::size_t> stage_of_;
  std::vector<std::size_t> by_name_;  // as stage_of_, before globs
  std::size_t stage_ = 0, item_ = 0;
  ResolvedStages result_;
};

}  // namespace

ResolvedStages resolve_patterns(const Graph& graph, const std::vector<std::vector<std::string>>& stages) {
  return Resolution(graph, stages).run();
}

std::vector<std::string> to_patterns(const Graph& graph, const std::vector<OpId>& ops) {
  std::vector<std::string> patterns;
  for (std::size_t begin = 0; begin < ops.size();) {
    std::size_t end = begin + 1;
    while (end < ops.size() && ops[end] == ops[end - 1] + 1) ++end;
    const std::string& first = graph.op(ops[begin]).name;
    patterns.push_back(end - begin == 1 ? first
                                        : fmt::format("{}{}{}", first, kRange, graph.op(ops[end - 1]).name));
    begin = end;
  }
  return patterns;
}

}  // namespace millrace::plan
