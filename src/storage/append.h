// Lines that are on the disk when the call returns.
#pragma once

#include <filesystem>
#include <string_view>

namespace millrace::storage {

/// Appends `line` and a line break in one write, and waits until the disk has them.
/// \throws SystemError  when the system refuses a step, such as a full disk.
void append_line(const std::filesystem::path& file, std::string_view line);

}  // namespace millrace::storage
