// How the islands of a search talk when the ranks of a job share them; implemented over MPI in app.
#pragma once

#include <string>
#include <vector>

namespace millrace::plan {

/// The ranks that search together: each calls the same functions in the same order.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Every rank's text, by rank, on all.
  virtual std::vector<std::string> gather_to_all(const std::string& mine) = 0;
};

}  // namespace millrace::plan
