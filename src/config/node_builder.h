// Builds plain nodes from the events of the YAML parser (private to document.cpp: it shows the library's types).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include "config/node.h"
#include "config/problems.h"

namespace millrace::config {

/// Aliases become copies. Throws InvalidInput on what makes the document unreadable, notes the rest in `problems`.
class NodeBuilder final : public YAML::EventHandler {
 public:
  NodeBuilder(std::shared_ptr<const Source> source, Problems& problems);

  /// The finished document; null if it held nothing.
  Node take_root() { return std::move(root_); }

  /// Byte at which the last scalar begins (its anchor, if it has one), if it is quoted.
  std::optional<std::size_t> last_quoted() const { return last_quoted_; }

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override;

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    bool expects_key;  // of a map
  };

  Where at(const YAML::Mark& mark) const;
  std::string path(std::size_t levels) const;
  void check_tag(const Where& where, const std::string& tag);
  void open(NodeKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor);
  void close();
  void place(Node node, YAML::anchor_t anchor);
  void place_key(const Node& node);
  void drop_duplicates(Node& map);

  std::shared_ptr<const Source> source_;
  Problems& problems_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t unfolded_ = 0;
  bool started_ = false;
  std::optional<std::size_t> last_quoted_;
  Node root_;
};

}  // namespace millrace::config
