// Writes line breaks as two characters: World gathers lines.
#include "app/rank_exchange.h"

namespace millrace::app {
namespace {

std::string to_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\\') {
      line += "\\\\";
    } else {
      line += c;
    }
  }
  return line;
}

std::string from_line(const std::string& line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      text += line[i];
    } else {
      text += line[++i] == 'n' ? '\n' : '\\';
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> RankExchange::gather_to_all(const std::string& mine) {
  std::vector<std::string> texts = world_->gather_to_all(to_line(mine));
  for (std::string& text : texts) text = from_line(text);
  return texts;
}

}  // namespace millrace::app
