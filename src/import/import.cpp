// Tells the kind of a file and calls its reader.
#include "import/import.h"

#include <fstream>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "base/errors.h"
#include "import/dnn_partitioning.h"
#include "import/pipedream.h"
#include "import/piper.h"

namespace millrace::import {
namespace {

std::string read_file(const std::filesystem::path& file) {
  std::error_code fault;
  const auto status = std::filesystem::status(file, fault);
  if (!std::filesystem::exists(status)) throw InvalidInput(fmt::format("{}: no such file", file.string()));
  if (std::filesystem::is_directory(status)) {
    throw InvalidInput(fmt::format("{}: is a folder; a graph file is needed", file.string()));
  }
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  if (!stream || stream.bad()) throw InvalidInput(fmt::format("{}: cannot be read", file.string()));
  return std::move(text).str();
}

}  // namespace

Imported load(const std::filesystem::path& file, const Options& options) {
  return load_text(read_file(file), file.string(), options);
}

Imported load_text(std::string_view text, const std::string& file, const Options& options) {
  if (is_pipedream(text)) return {read_pipedream(text, file, options.profile_batch), "pipedream", 1};
  const JsonFile document(file, text);
  if (document.root().find("maxFPGAs")) return {read_dnn_partitioning(document), "dnn-partitioning", 1};
  if (document.root().find("maxDevices")) {
    Graph graph = read_piper(document);
    const std::int64_t batch = std::get<TensorParallelModel>(graph.carried()->extra).batch;
    return {std::move(graph), "piper", batch};
  }
  throw InvalidInput(fmt::format("{}: unknown kind of file; allowed: dnn-partitioning JSON, Piper JSON", file));
}

}  // namespace millrace::import
