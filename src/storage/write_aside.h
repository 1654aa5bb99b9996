// Files that appear whole or not at all: written under another name, put on the disk, renamed.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace millrace::storage {

enum class Existing { refuse, replace };

/// Whether a file may be written there, to be told before the work that its content takes.
/// \throws InvalidInput  a folder, a device, a pipe; a file that exists and may not be replaced.
void check_target(const std::filesystem::path& target, Existing existing);

/// Calls `write` with a path beside `target`, syncs what it wrote, renames it to `target` and syncs the folder.
/// A symbolic link is followed: the file that it points to is replaced. Missing folders on the way are made. If `write`
/// throws, or the process dies, `target` is as it was.
/// \throws InvalidInput as check_target(); SystemError when the system refuses a step.
void write_aside(const std::filesystem::path& target, Existing existing,
                 const std::function<void(const std::filesystem::path&)>& write);

/// The same for a short text.
void write_text_aside(const std::filesystem::path& target, Existing existing, std::string_view text);

/// Names that were made or changed in the folder are on the disk when it returns.
void sync_folder(const std::filesystem::path& folder);

}  // namespace millrace::storage
