// Holds an output against the inputs of its command.
#include "app/output_file.h"

#include <system_error>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::app {

storage::Existing existing(const Arguments& arguments) {
  return arguments.overwrite ? storage::Existing::replace : storage::Existing::refuse;
}

void refuse_same_file(const std::filesystem::path& output, const std::vector<std::filesystem::path>& inputs) {
  for (const std::filesystem::path& input : inputs) {
    std::error_code failure;  // not there: then they are different
    if (!std::filesystem::equivalent(output, input, failure) || failure) continue;
    throw InvalidInput(
        fmt::format("{}: is an input of this command; it is not replaced, --overwrite or not", output.string()));
  }
}

}  // namespace millrace::app
