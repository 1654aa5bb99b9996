// Which processor this is.
#pragma once

#include <string>

namespace millrace::probe {

/// Its name as the system tells it; "unknown" where it does not.
std::string processor_name();

}  // namespace millrace::probe
