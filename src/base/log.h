// Logging facade: levels and text, nothing of the library behind it. Logs go to standard error.
#pragma once

#include <string_view>

namespace millrace::log {

enum class Level { quiet, normal, verbose };

/// What is shown: quiet = warnings only, normal = notices, verbose = details too. `prefix` names the rank ("rank 2").
void configure(Level level, std::string_view prefix = {});

void detail(std::string_view text);
void notice(std::string_view text);
void warning(std::string_view text);
void error(std::string_view text);

}  // namespace millrace::log
