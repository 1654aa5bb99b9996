// Finds the files that a configuration names: beside it first, so that it works from any folder.
#pragma once

#include <filesystem>

namespace millrace::config {

/// Absolute path of the input `written`: in the folder of the file that names it, else in the working directory. `~`
/// and `$NAME` mean nothing here.
/// \throws InvalidInput  "no such file 'x.h5'; looked for /a/x.h5 and /b/x.h5"; a folder is no file.
std::filesystem::path find_input(const std::filesystem::path& written, const std::filesystem::path& folder);

}  // namespace millrace::config
