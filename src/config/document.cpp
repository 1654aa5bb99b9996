// Reads one strict YAML document into plain nodes; the only door to the YAML library.
#include "config/document.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "config/node_builder.h"
#include "config/text_check.h"

namespace millrace::config {
namespace {

std::string read_text(const std::filesystem::path& file, const std::shared_ptr<const Source>& source) {
  const Where whole{source, 0, 0};
  std::error_code fault;
  const auto status = std::filesystem::status(file, fault);
  if (!std::filesystem::exists(status)) refuse_at(whole, "no such file");
  if (std::filesystem::is_directory(status)) refuse_at(whole, "is a folder; a YAML file is needed");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    const std::string reason = errno != 0 ? std::generic_category().message(errno) : "unknown reason";
    refuse_at(whole, "cannot be opened: " + reason);
  }
  std::ostringstream text;
  text << stream.rdbuf();
  if (stream.bad()) refuse_at(whole, "cannot be read to its end");
  return std::move(text).str();
}

// The library's words, put so that they tell what to look for.
std::string reason_of(const YAML::ParserException& error) {
  using namespace YAML;
  static const std::map<std::string_view, std::string_view> plainer{
      {ErrorMsg::MAP_VALUE, "a ':' where no key can stand; is a quote, a line break or the indentation wrong?"},
      {ErrorMsg::END_OF_MAP, "this is no key of the map above; is a ':', a quote or the indentation wrong?"},
      {ErrorMsg::END_OF_SEQ, "this is no element of the list above; is a '-', a quote or the indentation wrong?"},
      {ErrorMsg::END_OF_MAP_FLOW, "a '{' has no '}', or a ',' is missing"},
      {ErrorMsg::END_OF_SEQ_FLOW, "a '[' has no ']', or a ',' is missing"},
      {ErrorMsg::EOF_IN_SCALAR, "a quote is not closed"},
      {ErrorMsg::BAD_FILE, "nested too deeply"},
  };
  const auto entry = plainer.find(error.msg);
  return std::string(entry == plainer.end() ? std::string_view(error.msg) : entry->second);
}

Where place_of(std::string_view text, std::size_t at, const std::shared_ptr<const Source>& source) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {source, static_cast<int>(line), static_cast<int>(at - line_start) + 1};
}

void check_root(const Node& root, const std::shared_ptr<const Source>& source) {
  if (root.is_map()) return;
  if (root.is_null()) refuse_at({source, 1, 1}, "the document is empty; a map of keys is needed");
  const bool glued = root.is_scalar() && !root.quoted && root.text.find(':') != std::string::npos;
  refuse_at(root.where, fmt::format("found {} as the whole document, allowed: a map of keys{}", found(root),
                                    glued ? " (a ':' needs a space behind it)" : ""));
}

}  // namespace

std::shared_ptr<const Source> file_source(const std::filesystem::path& file) {
  return std::make_shared<Source>(Source{file.string(), file.parent_path(), true});
}

Node load_text(std::string_view text, std::shared_ptr<const Source> source, Problems& problems, Root root) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  check_text(text, source);
  NodeBuilder builder(source, problems);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) continue;  // the builder refuses the second
  } catch (const YAML::ParserException& error) {
    const bool has_place = !error.mark.is_null();
    refuse_at({source, has_place ? error.mark.line + 1 : 1, has_place ? error.mark.column + 1 : 1}, reason_of(error));
  }
  // Only the last scalar can run into the end of the text.
  if (const auto quoted = builder.last_quoted(); quoted && !closes_first_quote(text.substr(*quoted))) {
    refuse_at(place_of(text, *quoted, source), "a quote is not closed");
  }
  Node node = builder.take_root();
  if (!node.where.source) node.where = {source, 1, 1};
  if (root == Root::map) check_root(node, source);
  return node;
}

Node load_file(const std::filesystem::path& file, Problems& problems) {
  const auto source = file_source(file);
  return load_text(read_text(file, source), source, problems);
}

}  // namespace millrace::config
