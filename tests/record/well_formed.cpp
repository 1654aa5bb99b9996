// Walks through the text once, with a stack of the open elements.
#include "tests/record/well_formed.h"

#include <cctype>
#include <set>
#include <stdexcept>
#include <vector>

namespace millrace::record::testing {
namespace {

class Walker {
 public:
  explicit Walker(const std::string& xml) : xml_(xml) {}

  XmlCheck walk() {
    try {
      while (at_ < xml_.size()) step();
      if (!open_.empty()) fail("<" + open_.back() + "> is never closed");
      if (roots_ != 1) fail("there must be one root element");
    } catch (const std::runtime_error& error) {
      check_.fault = error.what();
    }
    return check_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("at byte " + std::to_string(at_) + ": " + what);
  }
  char peek() const { return at_ < xml_.size() ? xml_[at_] : '\0'; }
  char take() {
    if (at_ >= xml_.size()) fail("the text ends too early");
    return xml_[at_++];
  }
  void expect(char c) {
    if (take() != c) fail(std::string("expected '") + c + "'");
  }
  void spaces() {
    while (std::isspace(static_cast<unsigned char>(peek())) != 0) ++at_;
  }

  std::string name() {
    std::string all;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '-' || peek() == '_') all += take();
    if (all.empty()) fail("expected a name");
    return all;
  }

  char entity() {
    std::string word;
    while (peek() != ';') word += take();
    expect(';');
    static const std::map<std::string, char> known{
        {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    const auto found = known.find(word);
    if (found == known.end()) fail("unknown entity '" + word + "'");
    return found->second;
  }

  void step() {
    if (peek() == '<') {
      ++at_;
      if (peek() == '/') return close();
      return element();
    }
    const char c = take();
    if (open_.empty() && std::isspace(static_cast<unsigned char>(c)) == 0) fail("text outside the root element");
    if (c == '>') fail("a bare '>'");
    check_.text += c == '&' ? entity() : c;
  }

  void close() {
    expect('/');
    const std::string closed = name();
    if (open_.empty() || open_.back() != closed) fail("</" + closed + "> closes nothing");
    open_.pop_back();
    spaces();
    expect('>');
  }

  void element() {
    const std::string opened = name();
    if (open_.empty()) ++roots_;
    ++check_.elements[opened];
    std::set<std::string> seen;
    for (spaces(); peek() != '>' && peek() != '/'; spaces()) {
      const std::string attribute = name();
      if (!seen.insert(attribute).second) fail("attribute '" + attribute + "' twice");
      expect('=');
      expect('"');
      while (peek() != '"') {
        const char c = take();
        if (c == '<') fail("'<' in an attribute");
        if (c == '&') entity();
      }
      expect('"');
    }
    if (peek() == '/') {
      ++at_;
    } else {
      open_.push_back(opened);
    }
    expect('>');
  }

  const std::string& xml_;
  std::size_t at_ = 0;
  int roots_ = 0;
  std::vector<std::string> open_;
  XmlCheck check_;
};

}  // namespace

XmlCheck check_xml(const std::string& xml) { return Walker(xml).walk(); }

}  // namespace millrace::record::testing
