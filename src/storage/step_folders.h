// Folders of numbered steps that appear whole or not at all, of which the newest few are kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace millrace::storage {

/// `ROOT/step-00000100`: a step is complete from the moment it has this name. Until then, and again from the moment it
/// is given up, it has another one, so that a kill at any moment leaves complete steps and remains, which the next
/// begin() removes. One process changes the folders; any may write files into a step that has begun.
class StepFolders {
 public:
  explicit StepFolders(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path complete(std::int64_t step) const;
  std::filesystem::path partial(std::int64_t step) const;

  /// The complete ones, newest first.
  std::vector<std::int64_t> steps() const;

  /// Makes an empty partial(step), and the root where it is missing. \throws SystemError
  void begin(std::int64_t step) const;
  /// Renames it to complete(step), in place of a former one; its files are on the disk already. \throws SystemError
  void finish(std::int64_t step) const;
  /// Removes what begin() made.
  void abandon(std::int64_t step) const noexcept;
  /// Removes all complete steps but the newest `count`. \throws SystemError
  void keep(std::size_t count) const;

 private:
  void give_up(std::int64_t step) const;
  void remove_remains() const;

  std::filesystem::path root_;
};

}  // namespace millrace::storage
