// Walks a JSON document and its text in step.
#include "import/json_place.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millrace::import {
namespace {

using nlohmann::json;

bool search(const json& value, const json& target, JsonPath& path) {
  if (&value == &target) return true;
  if (!value.is_structured()) return false;
  std::size_t index = 0;
  for (auto item = value.begin(); item != value.end(); ++item, ++index) {
    path.push_back(value.is_object() ? JsonStep(item.key()) : JsonStep(index));
    if (search(*item, target, path)) return true;
    path.pop_back();
  }
  return false;
}

// A reading position in valid JSON.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) { skip_space(); }

  std::size_t at() const { return at_; }

  // From an opening bracket to the value of one of its elements.
  void enter(const JsonStep& step) {
    const auto* key = std::get_if<std::string>(&step);
    const std::size_t wanted = key != nullptr ? 0 : std::get<std::size_t>(step);
    next();  // the bracket
    for (std::size_t index = 0;; ++index) {
      if (key != nullptr) {
        const std::size_t first = at_;
        skip_value();
        const json name = json::parse(text_.substr(first, last_ - first));
        next();  // ':'
        if (name == *key) return;
      } else if (index == wanted) {
        return;
      }
      skip_value();
      next();  // ','
    }
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  void skip_space() {
    while (!done() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  void next() {
    ++at_;
    skip_space();
  }
  void skip_string() {
    for (++at_; !done() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
  }
  // Leaves last_ behind the value, at_ behind the space that follows it.
  void skip_value() {
    int depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
      } else if (c == '{' || c == '[') {
        ++depth;
        ++at_;
      } else if (c == '}' || c == ']') {
        --depth;
        ++at_;
      } else if (depth > 0) {
        ++at_;
      } else {
        at_ = std::min(text_.find_first_of(",:]} \t\r\n", at_), text_.size());
      }
    } while (depth > 0 && !done());
    last_ = at_;
    skip_space();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t last_ = 0;
};

}  // namespace

JsonPath path_of(const json& root, const json& target) {
  JsonPath path;
  search(root, target, path);
  return path;
}

std::string to_text(const JsonPath& path) {
  std::string text;
  for (const JsonStep& step : path) {
    if (const auto* key = std::get_if<std::string>(&step)) {
      text.append(text.empty() ? "" : ".").append(*key);
    } else {
      text += fmt::format("[{}]", std::get<std::size_t>(step));
    }
  }
  return text;
}

int line_of(std::string_view text, const JsonPath& path) {
  Cursor cursor(text);
  for (const JsonStep& step : path) cursor.enter(step);
  return line_and_column(text, cursor.at()).first;
}

std::pair<int, int> line_and_column(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {static_cast<int>(line), static_cast<int>(before.size() - line_start) + 1};
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

bool opens_like_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

std::string reason_of(std::string_view what) {
  const auto drop_to = [&](std::string_view mark) {
    if (const auto at = what.find(mark); at != std::string_view::npos) what.remove_prefix(at + mark.size());
  };
  drop_to("] ");
  if (what.starts_with("parse error")) drop_to(": ");
  return std::string(what.substr(0, what.find("; last read")));
}

}  // namespace millrace::import
