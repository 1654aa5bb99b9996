// What a checkpoint says of itself: where the run stood, what it was made of, and the digest of each of its files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace millrace::runtime {

/// Where training stands between two iterations. Batches, dropout masks and initial weights are functions of the seed
/// and the step, so this and the tensors are all of it.
struct TrainingCounters {
  std::int64_t step = 0;     ///< iterations done
  std::int64_t updates = 0;  ///< of them, those that were not skipped
  std::int64_t samples = 0;  ///< seen, padding not counted
  std::int64_t skips = 0;    ///< skipped iterations in a row
  double loss = 0;           ///< of the last iteration
};

/// A file of the checkpoint's folder.
struct CheckpointFile {
  std::string name;
  std::int64_t bytes = 0;
  std::string digest;                ///< XXH3-128 of its content
  std::vector<std::string> tensors;  ///< that it holds; none: a text
};

struct CheckpointManifest {
  TrainingCounters counters;
  std::string graph_digest;
  std::string order;        ///< what makes the batches: seed, samples, batch, tail
  std::string optimizer;    ///< kind and the state it keeps
  std::string request;      ///< identity of what the plan was made for; the stored plan is used where it is the same
  std::string partitioner;  ///< that made the stored plan; "": an older checkpoint
  std::vector<CheckpointFile> files;
};

inline constexpr const char* kManifestFile = "checkpoint.yaml";
inline constexpr const char* kPlanFile = "plan.yaml";
inline constexpr const char* kConfigFile = "config.yaml";

/// YAML whose last line is the digest of the lines before it.
std::string to_text(const CheckpointManifest& manifest);
/// \throws InvalidInput  naming `file`, when the text was changed or cut.
CheckpointManifest manifest_from_text(const std::string& text, const std::filesystem::path& file);

/// XXH3-128 of a file's content and its size, read piece by piece. \throws SystemError
/// \param read  called after each piece of it.
CheckpointFile describe_file(
    const std::filesystem::path& file, const std::function<void()>& read = [] {});

/// The manifest of a checkpoint all of whose files are as they were written.
/// \throws Error  what is missing or damaged.
CheckpointManifest read_verified(const std::filesystem::path& folder);

/// A checkpoint to go on from.
struct FoundCheckpoint {
  std::filesystem::path folder;
  CheckpointManifest manifest;
};

/// The newest complete checkpoint under `root`. A damaged one is passed over, after `damaged` was told why.
std::optional<FoundCheckpoint> newest_checkpoint(const std::filesystem::path& root,
                                                 const std::function<void(const std::string&)>& damaged);

}  // namespace millrace::runtime
