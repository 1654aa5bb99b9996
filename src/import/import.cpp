// Tells the kind of a file and calls its reader.
#include "import/import.h"

#include <fstream>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "import/dnn_partitioning.h"
#include "import/graph_file.h"
#include "import/json_file.h"
#include "import/json_place.h"
#include "import/pipedream.h"
#include "import/piper.h"

namespace millrace::import {
namespace {

constexpr std::string_view kUnknownKind =
    "a file of unknown kind; allowed: a millrace graph (key 'millrace_graph'), PipeDream profile (lines 'node -- …'), "
    "dnn-partitioning JSON (key 'maxFPGAs'), Piper JSON (key 'maxDevices')";

std::string read_file(const std::filesystem::path& file) {
  std::error_code fault;
  const auto status = std::filesystem::status(file, fault);
  if (!std::filesystem::exists(status)) throw InvalidInput(fmt::format("{}: no such file", file.string()));
  if (std::filesystem::is_directory(status)) {
    throw InvalidInput(fmt::format("{}: is a folder; a graph file is needed", file.string()));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  const auto size = std::filesystem::file_size(file, fault);  // of a pipe unknown
  if (!fault) text.reserve(static_cast<std::size_t>(size));
  std::vector<char> chunk(std::size_t{1} << 20);
  while (stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || stream.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad() || !stream.eof()) throw InvalidInput(fmt::format("{}: cannot be read", file.string()));
  return text;
}

Imported load_foreign_json(std::string_view text, const std::string& file) {
  const JsonFile document(file, text);
  const JsonValue root = document.root();
  if (root.find("maxFPGAs") || root.find("maxSizePerFPGA")) {
    return {read_dnn_partitioning(document), "dnn-partitioning", 1};
  }
  if (root.find("maxDevices") || root.find("mbsInBatch")) {
    Graph graph = read_piper(document);
    const std::int64_t batch = std::get<TensorParallelModel>(graph.carried()->extra).batch;
    return {std::move(graph), "piper", batch};
  }
  root.refuse(kUnknownKind);
}

Imported load_graph(std::string_view text, const std::string& file) {
  GraphFile read = read_graph_file(text, file);
  return {std::move(read.graph), "millrace graph", read.batch};
}

}  // namespace

Imported load(const std::filesystem::path& file, const Options& options) {
  if (file.extension() == ".onnx") {
    throw InvalidInput(
        fmt::format("{}: ONNX is not built in yet; allowed: a millrace graph, a PipeDream profile, "
                    "dnn-partitioning JSON, Piper JSON",
                    file.string()));
  }
  return load_text(read_file(file), file.string(), options);
}

Imported load_text(std::string_view text, const std::string& file, const Options& options) {
  text = without_byte_order_mark(text);
  const bool is_json = opens_like_json(text);
  if (!is_json && is_pipedream(text)) return {read_pipedream(text, file, options.profile_batch), "pipedream", 1};
  if (options.profile_batch) {
    throw InvalidInput(fmt::format("{}: profile_batch is for PipeDream profiles; this is none", file));
  }
  // The key that every graph file has is looked for as text: a large file is not parsed twice to know its kind.
  if (text.find("millrace_graph") != std::string_view::npos) return load_graph(text, file);
  if (is_json) return load_foreign_json(text, file);
  throw InvalidInput(fmt::format("{}: {}", file, kUnknownKind));
}

}  // namespace millrace::import
