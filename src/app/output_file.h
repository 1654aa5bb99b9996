// What a command must not write over: the files that it reads.
#pragma once

#include <filesystem>
#include <vector>

namespace millrace::app {

/// \throws InvalidInput  when `output` is one of `inputs`, by whatever name.
void refuse_same_file(const std::filesystem::path& output, const std::vector<std::filesystem::path>& inputs);

}  // namespace millrace::app
