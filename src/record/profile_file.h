// The file of a measured operator profile (HDF5): what `millrace profile -o` writes and `costs:` reads.
#pragma once

#include <filesystem>
#include <vector>

#include "cost/profile.h"
#include "record/results_file.h"
#include "storage/write_aside.h"

namespace millrace::record {

/// Tables `/operators` (a row for each operator and size), `/updates`, `/sizes` and, of jobs of several ranks,
/// `/ranks`,
/// `/links` and `/reductions`; what the profile is of is in the attributes of `/`, after `origin`.
void write_profile(const std::filesystem::path& file, storage::Existing existing, const cost::Profile& profile,
                   const std::vector<Fact>& origin);

/// \throws InvalidInput  a file that is no profile, or one with missing rows.
cost::Profile read_profile(const std::filesystem::path& file);

}  // namespace millrace::record
