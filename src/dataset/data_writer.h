// Writes data files (INTERFACES 9, Data files).
#pragma once

#include <filesystem>
#include <vector>

#include "dataset/data_file.h"
#include "dataset/images.h"
#include "storage/write_aside.h"

namespace millrace::dataset {

/// Both write aside and rename: `target` appears whole or not at all.
/// \throws InvalidInput when `target` exists and may not be replaced, SystemError when it cannot be written.
void write_images(const std::filesystem::path& target, storage::Existing existing, const DataDescription& description,
                  const Images& train, const Images& test);
void write_text(const std::filesystem::path& target, storage::Existing existing, const DataDescription& description,
                const std::vector<std::int32_t>& train, const std::vector<std::int32_t>& test);

}  // namespace millrace::dataset
