// All that is wrong with a configuration, collected so that a user sees it at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"

namespace millrace::config {

class Reader;

/// One line a problem: `exp.yaml:12:7: plan.micro_batches: found '1e3', allowed: integer, at least 1`.
class Problems {
 public:
  /// `path` is the key's, "plan.micro_batches"; empty for the document as a whole.
  void add(const Where& where, std::string_view path, std::string_view reason);

  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }

  /// Source by source in the order of their first problem, in each by line and column; at most 100 lines.
  std::string text() const;

  /// \throws InvalidInput  with text(), unless there is none.
  /// \throws std::logic_error  while a Reader is alive: it has yet to tell the unknown keys.
  void throw_if_any() const;

 private:
  friend class Reader;
  struct Problem {
    std::size_t source;
    int line;
    int column;
    std::string text;
  };

  std::vector<std::string> sources_;
  std::vector<Problem> problems_;
  int open_readers_ = 0;
};

}  // namespace millrace::config
