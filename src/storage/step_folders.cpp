// Names, renames and the order in which they reach the disk.
#include "storage/step_folders.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/errors.h"
#include "storage/write_aside.h"

namespace millrace::storage {
namespace {

constexpr const char* kPrefix = "step-";
constexpr const char* kPartial = ".partial";
constexpr const char* kOld = ".old";

void require(const std::error_code& failure, const std::filesystem::path& path, const char* what) {
  if (failure) throw SystemError(fmt::format("{}: {}: {}", path.string(), what, failure.message()));
}

void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code failure;
  std::filesystem::rename(from, to, failure);
  require(failure, to, "rename failed");
}

// The number in "step-00000100"; -1 for other names.
std::int64_t step_of(const std::string& name) {
  const std::string digits = name.starts_with(kPrefix) ? name.substr(std::string(kPrefix).size()) : "";
  const bool number = !digits.empty() && digits.size() <= 18 && std::all_of(digits.begin(), digits.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  return number ? std::stoll(digits) : -1;
}

}  // namespace

std::filesystem::path StepFolders::complete(std::int64_t step) const {
  return root_ / fmt::format("{}{:08}", kPrefix, step);
}

std::filesystem::path StepFolders::partial(std::int64_t step) const { return complete(step).string() + kPartial; }

std::vector<std::int64_t> StepFolders::steps() const {
  std::vector<std::int64_t> found;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(root_, missing)) {
    const std::int64_t step = step_of(entry.path().filename().string());
    if (step >= 0 && entry.is_directory()) found.push_back(step);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

void StepFolders::begin(std::int64_t step) const {
  std::error_code failure;
  std::filesystem::create_directories(root_, failure);
  require(failure, root_, "cannot be made");
  remove_remains();
  std::filesystem::create_directory(partial(step), failure);
  require(failure, partial(step), "cannot be made");
}

void StepFolders::finish(std::int64_t step) const {
  sync_folder(partial(step));
  if (std::filesystem::exists(complete(step))) give_up(step);
  rename_folder(partial(step), complete(step));
  sync_folder(root_);
}

void StepFolders::abandon(std::int64_t step) const noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(partial(step), ignored);
}

void StepFolders::keep(std::size_t count) const {
  const std::vector<std::int64_t> all = steps();
  for (std::size_t i = count; i < all.size(); ++i) give_up(all[i]);
}

// Removing a folder takes a while; a kill meanwhile must not leave half of it under its name.
void StepFolders::give_up(std::int64_t step) const {
  const std::filesystem::path old = complete(step).string() + kOld;
  std::error_code failure;
  std::filesystem::remove_all(old, failure);
  require(failure, old, "cannot be removed");
  rename_folder(complete(step), old);
  std::filesystem::remove_all(old, failure);
  require(failure, old, "cannot be removed");
}

void StepFolders::remove_remains() const {
  std::error_code failure;
  std::vector<std::filesystem::path> remains;
  for (const auto& entry : std::filesystem::directory_iterator(root_, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && (name.ends_with(kPartial) || name.ends_with(kOld)))
      remains.push_back(entry.path());
  }
  require(failure, root_, "cannot be read");
  for (const std::filesystem::path& path : remains) {
    std::filesystem::remove_all(path, failure);
    require(failure, path, "cannot be removed");
  }
}

}  // namespace millrace::storage
