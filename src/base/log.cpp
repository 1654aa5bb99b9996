// Logging facade: levels and text, nothing of the library behind it. Logs go to standard error.
#include "base/log.h"

#include <memory>
#include <string>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace millrace::log {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = std::make_shared<spdlog::logger>("millrace", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("millrace: %v");
    return made;
  }();
  return *instance;
}

spdlog::string_view_t view(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

void configure(Level level, std::string_view prefix) {
  static constexpr spdlog::level::level_enum levels[]{spdlog::level::warn, spdlog::level::info, spdlog::level::debug};
  logger().set_level(levels[static_cast<int>(level)]);
  logger().set_pattern(prefix.empty() ? "millrace: %v" : "millrace: " + std::string(prefix) + ": %v");
}

void detail(std::string_view text) { logger().debug(view(text)); }
void notice(std::string_view text) { logger().info(view(text)); }
void warning(std::string_view text) { logger().warn("warning: {}", view(text)); }
void error(std::string_view text) { logger().error("error: {}", view(text)); }

}  // namespace millrace::log
