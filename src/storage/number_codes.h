// HDF5's codes for the number types. Private to the room.
#pragma once

#include <optional>

#include "storage/hdf5_call.h"
#include "storage/number_type.h"

namespace millrace::storage {

hid_t memory_code(NumberType type);  ///< as this machine stores it
hid_t file_code(NumberType type);    ///< little-endian, the same on every machine

/// The number type stored as `type`; nothing for other integers, texts and compounds.
std::optional<NumberType> number_type_of(hid_t type);

}  // namespace millrace::storage
