// What the tests of configuration share: documents from text, the message of a refusal, a folder to write in.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/errors.h"
#include "config/document.h"

namespace millrace::config {

inline std::shared_ptr<const Source> exp_yaml() { return file_source("exp.yaml"); }

/// What InvalidInput says when `call` throws it; "" when nothing is thrown.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

/// All that is said about loading `text` as exp.yaml.
inline std::string load_refusal(std::string_view text) {
  return refusal([&] {
    Problems problems;
    load_text(text, exp_yaml(), problems);
    problems.throw_if_any();
  });
}

inline Node load(std::string_view text) {
  Problems problems;
  Node node = load_text(text, exp_yaml(), problems);
  problems.throw_if_any();
  return node;
}

/// A folder of the running test, empty at its start, gone at its end.
class Folder {
 public:
  Folder() : path_(std::filesystem::path(testing::TempDir()) / ("config_" + test_name())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::filesystem::path& name, std::string_view text) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }

 private:
  static std::string test_name() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    return std::string(info->test_suite_name()) + "_" + info->name();
  }
  std::filesystem::path path_;
};

}  // namespace millrace::config
