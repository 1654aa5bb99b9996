// Variable-length UTF-8 strings of attributes and scalar datasets. Private to the room.
#pragma once

#include <string>
#include <vector>

#include "storage/handle.h"

namespace millrace::storage {

/// The memory and file type of a variable-length UTF-8 string.
Handle variable_text_type(const std::string& where);

/// All strings of attribute or dataset `id` whose stored type is any string type. `is_attribute` says which.
std::vector<std::string> read_texts(std::int64_t id, bool is_attribute, const std::string& where);

}  // namespace millrace::storage
