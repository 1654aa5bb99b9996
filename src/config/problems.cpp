// All that is wrong with a configuration, collected so that a user sees it at once.
#include "config/problems.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"

namespace millrace::config {
namespace {

constexpr std::size_t kMostShown = 100;

}  // namespace

void Problems::add(const Where& where, std::string_view path, std::string_view reason) {
  const std::string source = where.source ? where.source->name : "";
  auto known = std::find(sources_.begin(), sources_.end(), source);
  if (known == sources_.end()) known = sources_.insert(sources_.end(), source);
  std::string text = to_text(where);
  if (!text.empty()) text += ": ";
  if (!path.empty()) text.append(path).append(": ");
  text.append(reason);
  problems_.push_back({static_cast<std::size_t>(known - sources_.begin()), where.line, where.column, std::move(text)});
}

std::string Problems::text() const {
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.source, a.line, a.column) < std::tie(b.source, b.line, b.column);
  });
  std::vector<std::string> lines;
  for (const Problem& problem : sorted) {
    if (lines.size() == kMostShown) {
      lines.push_back(fmt::format("… and {} more", sorted.size() - kMostShown));
      break;
    }
    lines.push_back(problem.text);
  }
  return join(lines, "\n");
}

void Problems::throw_if_any() const {
  if (open_readers_ > 0) throw std::logic_error("Problems::throw_if_any: a Reader is still open");
  if (!empty()) throw InvalidInput(text());
}

}  // namespace millrace::config
