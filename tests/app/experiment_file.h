// Writes experiment files for the tests of their reader.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "app/experiment.h"
#include "base/errors.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::app {

/// One experiment file in a folder of its own.
class ExperimentFile {
 public:
  explicit ExperimentFile(const std::string& text) { std::ofstream(path()) << text; }

  std::filesystem::path path() const { return folder_ / "e.yaml"; }
  const storage::TemporaryFolder& folder() const { return folder_; }
  Experiment read(const std::vector<std::string>& sets = {}) const { return read_experiment({path(), sets, {}}); }

 private:
  storage::TemporaryFolder folder_;
};

/// The smallest experiment, with `more` lines after it.
inline std::string small(const std::string& more = "") {
  return "name: tiny\nmodel: {name: mlp}\ndata: {batch: 32}\n" + more;
}

/// What the reader says about `text`; empty if it takes it.
inline std::string refusal(const std::string& text, const std::vector<std::string>& sets = {}) {
  try {
    ExperimentFile(text).read(sets);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

}  // namespace millrace::app
