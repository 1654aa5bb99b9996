// The manifest's text and the checks of a checkpoint's files.
#include "runtime/checkpoint_manifest.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/hash.h"
#include "config/document.h"
#include "config/emit.h"
#include "config/reader.h"
#include "storage/step_folders.h"

namespace millrace::runtime {
namespace {

using config::Node;

constexpr std::int64_t kVersion = 1;
constexpr std::string_view kDigestKey = "digest: ";
constexpr std::size_t kPiece = std::size_t{1} << 20;

Node integer(std::int64_t value) { return Node::plain(std::to_string(value)); }

Node to_node(const CheckpointFile& file) {
  Node node = Node::map();
  node.add("name", Node::quote(file.name));
  node.add("bytes", integer(file.bytes));
  node.add("digest", Node::quote(file.digest));
  Node tensors = Node::sequence();
  for (const std::string& tensor : file.tensors) tensors.items.push_back(Node::quote(tensor));
  node.add("tensors", std::move(tensors));
  return node;
}

CheckpointFile read_file(const config::Field& field) {
  config::Reader reader(field);
  CheckpointFile file;
  file.name = reader.required("name", config::Text{});
  file.bytes = reader.required("bytes", config::Integer{0});
  file.digest = reader.required("digest", config::Text{});
  const config::Field tensors = reader.field("tensors");
  for (const config::Field& tensor : tensors.items()) file.tensors.push_back(tensor.as(config::Text{}));
  return file;
}

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw SystemError(file.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string to_text(const CheckpointManifest& manifest) {
  const TrainingCounters& counters = manifest.counters;
  Node node = Node::map();
  node.add("millrace_checkpoint", integer(kVersion));
  node.add("step", integer(counters.step));
  node.add("updates", integer(counters.updates));
  node.add("samples", integer(counters.samples));
  node.add("skips", integer(counters.skips));
  node.add("loss", Node::quote(fmt::format("{}", counters.loss)));  // text, since it may be no number
  node.add("graph_digest", Node::quote(manifest.graph_digest));
  node.add("order", Node::quote(manifest.order));
  node.add("optimizer", Node::quote(manifest.optimizer));
  node.add("request", Node::quote(manifest.request));
  node.add("partitioner", Node::quote(manifest.partitioner));
  Node files = Node::sequence();
  for (const CheckpointFile& file : manifest.files) files.items.push_back(to_node(file));
  node.add("files", std::move(files));
  const std::string text = config::to_yaml(node);
  return fmt::format("{}{}{}\n", text, kDigestKey, digest(text));
}

CheckpointManifest manifest_from_text(const std::string& text, const std::filesystem::path& file) {
  const std::size_t end = text.rfind("\n" + std::string(kDigestKey));
  const std::string body = end == std::string::npos ? "" : text.substr(0, end + 1);
  if (body.empty() || text.substr(end + 1) != fmt::format("{}{}\n", kDigestKey, digest(body))) {
    throw InvalidInput(file.string() + ": is damaged: its digest is another");
  }
  config::Problems problems;
  const Node root = config::load_text(body, config::file_source(file), problems);
  CheckpointManifest manifest;
  {
    config::Reader reader(root, problems);
    reader.required("millrace_checkpoint", config::Integer{kVersion, kVersion});
    TrainingCounters& counters = manifest.counters;
    counters.step = reader.required("step", config::Integer{0});
    counters.updates = reader.required("updates", config::Integer{0});
    counters.samples = reader.required("samples", config::Integer{0});
    counters.skips = reader.required("skips", config::Integer{0});
    counters.loss = std::strtod(reader.required("loss", config::Text{}).c_str(), nullptr);
    manifest.graph_digest = reader.required("graph_digest", config::Text{});
    manifest.order = reader.required("order", config::Text{});
    manifest.optimizer = reader.required("optimizer", config::Text{});
    manifest.request = reader.required("request", config::Text{});
    manifest.partitioner = reader.get("partitioner", config::Text{}, std::string());
    const config::Field files = reader.field("files");
    for (const config::Field& entry : files.items()) manifest.files.push_back(read_file(entry));
  }
  problems.throw_if_any();
  return manifest;
}

CheckpointFile describe_file(const std::filesystem::path& file, const std::function<void()>& read) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw SystemError(file.string() + ": cannot be read");
  CheckpointFile described;
  described.name = file.filename().string();
  DigestStream stream;
  const auto piece = std::make_unique<char[]>(kPiece);
  while (in.read(piece.get(), kPiece) || in.gcount() > 0) {
    stream.add({piece.get(), static_cast<std::size_t>(in.gcount())});
    described.bytes += in.gcount();
    read();
  }
  if (in.bad()) throw SystemError(file.string() + ": reading failed");
  described.digest = stream.digest();
  return described;
}

CheckpointManifest read_verified(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kManifestFile;
  CheckpointManifest manifest = manifest_from_text(content(file), file);
  for (const CheckpointFile& expected : manifest.files) {
    const CheckpointFile found = describe_file(folder / expected.name);
    if (found.bytes != expected.bytes) {
      throw InvalidInput(fmt::format("{}: is damaged: {} bytes, {} were written", (folder / expected.name).string(),
                                     found.bytes, expected.bytes));
    }
    if (found.digest != expected.digest) {
      throw InvalidInput((folder / expected.name).string() + ": is damaged: its digest is another");
    }
  }
  return manifest;
}

std::optional<FoundCheckpoint> newest_checkpoint(const std::filesystem::path& root,
                                                 const std::function<void(const std::string&)>& damaged) {
  const storage::StepFolders folders(root);
  for (const std::int64_t step : folders.steps()) {
    try {
      return FoundCheckpoint{folders.complete(step), read_verified(folders.complete(step))};
    } catch (const Error& error) {
      damaged(error.what());
    }
  }
  return std::nullopt;
}

}  // namespace millrace::runtime
