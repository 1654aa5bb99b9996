// HDF5 files that are complete from the first moment they can be seen, and tables that outgrow theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "storage/file.h"
#include "storage/file_lock.h"
#include "storage/write_aside.h"

namespace millrace::storage {

/// Makes the locked file aside, lets `build` fill it (groups, attributes, empty tables), renames it into place and
/// opens it for writing: a kill at any moment leaves no file, the former one, or a readable one.
/// \throws InvalidInput when it exists and may not be replaced.
File make_published(const FileLock& lock, Existing existing, const std::function<void(File&)>& build);

/// Lets `edit` change a copy of the locked file, made aside, and renames it into place: a kill at any moment leaves the
/// former file or the changed one. The file must be closed; reopen it with File::modify.
void edit_published(const FileLock& lock, const std::function<void(File&)>& edit);

/// Gives table `name` ("iterations") room for exactly `capacity` rows, or for those that it has, if these are more; for
/// `edit` of edit_published, in big steps.
void resize_table(File& file, const std::string& name, std::uint64_t capacity);

}  // namespace millrace::storage
