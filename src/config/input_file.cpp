// Finds the files that a configuration names: beside it first, so that it works from any folder.
#include "config/input_file.h"

#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"

namespace millrace::config {

std::filesystem::path find_input(const std::filesystem::path& written, const std::filesystem::path& folder) {
  if (written.empty()) throw InvalidInput("the name of a file is empty");
  const std::filesystem::path here = std::filesystem::current_path();
  const std::filesystem::path beside = (here / folder / written).lexically_normal();  // an absolute part wins
  const std::filesystem::path working = (here / written).lexically_normal();

  std::vector<std::string> tried;
  for (const auto& file : {beside, working}) {
    std::error_code fault;
    const auto status = std::filesystem::status(file, fault);
    const bool is_folder = std::filesystem::is_directory(status);
    if (std::filesystem::exists(status) && !is_folder) return file;
    const std::string words = is_folder ? file.string() + " (a folder)" : file.string();
    if (tried.empty() || tried.back() != words) tried.push_back(words);
  }
  throw InvalidInput(fmt::format("no such file '{}'; looked for {}", written.string(), join(tried, " and ")));
}

}  // namespace millrace::config
