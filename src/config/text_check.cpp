// Refuses what is no readable text before a YAML parser turns it into a riddle: binary files and tabs.
#include "config/text_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::config {
namespace {

// Length of the UTF-8 character at `at`, 0 if its bytes are none (overlong forms and surrogates included).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(at + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return follows(at + 1, low, high) && follows(at + 2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return follows(at + 1, low, high) && follows(at + 2) && follows(at + 3) ? 4 : 0;
  }
  return 0;
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F;
}

Where in_line(const Where& begin, std::size_t at) { return {begin.source, begin.line, static_cast<int>(at) + 1}; }

void check_characters_of(std::string_view line, const Where& begin, std::string_view kind) {
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t length = is_control(line[i]) ? 0 : utf8_length(line, i);
    if (length == 0) {
      const unsigned byte = static_cast<unsigned char>(line[i]);
      refuse_at(in_line(begin, i), fmt::format("byte 0x{:02x} is not text; a {} in UTF-8 is needed", byte, kind));
    }
    i += length;
  }
}

void check_indentation(std::string_view line, const Where& begin) {
  const std::size_t content = line.find_first_not_of(" \t\r");
  if (content == std::string_view::npos || line[content] == '#') return;
  const std::size_t tab = line.substr(0, content).find('\t');
  if (tab != std::string_view::npos) refuse_at(in_line(begin, tab), "tab in the indentation; indent with spaces");
}

template <class Check>
void each_line(std::string_view text, const std::shared_ptr<const Source>& source, Check check) {
  Where where{source, 1, 1};
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    check(line, where);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++where.line;
  }
}

// JSON is YAML in which indentation means nothing.
bool opens_like_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

}  // namespace

void refuse_at(const Where& where, std::string_view reason) {
  const std::string place = to_text(where);
  throw InvalidInput(place.empty() ? std::string(reason) : fmt::format("{}: {}", place, reason));
}

bool closes_first_quote(std::string_view text) {
  const std::size_t open = text.find_first_of("'\"");
  if (open == std::string_view::npos) return true;
  const char quote = text[open];
  for (std::size_t i = open + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      const bool is_escaped = quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
      if (!is_escaped) return true;
      ++i;
    }
  }
  return false;
}

void check_text(std::string_view text, const std::shared_ptr<const Source>& source) {
  const bool tabs_allowed = opens_like_json(text);
  each_line(text, source, [&](std::string_view line, const Where& begin) {
    check_characters_of(line, begin, "YAML file");
    if (!tabs_allowed) check_indentation(line, begin);
  });
}

void check_characters(std::string_view text, const std::shared_ptr<const Source>& source, std::string_view kind) {
  each_line(text, source, [&](std::string_view line, const Where& begin) { check_characters_of(line, begin, kind); });
}

}  // namespace millrace::config
