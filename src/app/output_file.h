// What a command may write over: an existing file when it was told so, never one that it reads.
#pragma once

#include <filesystem>
#include <vector>

#include "app/arguments.h"
#include "storage/write_aside.h"

namespace millrace::app {

/// `--overwrite`.
storage::Existing existing(const Arguments& arguments);

/// \throws InvalidInput  when `output` is one of `inputs`, by whatever name.
void refuse_same_file(const std::filesystem::path& output, const std::vector<std::filesystem::path>& inputs);

}  // namespace millrace::app
