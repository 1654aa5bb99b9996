// What the tests of the command line ask of a job, and the experiments they run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/job.h"

namespace millrace::cli {

/// The job ended with `code` and said one error, in one place, which holds all `parts`; nothing of it runs any more.
void expect_one_error(const Workplace& place, const Outcome& outcome, int code, const std::vector<std::string>& parts);

/// The job ended well, without an error, and nothing of it runs any more.
void expect_done(const Workplace& place, const Outcome& outcome);

/// Standard output as the one JSON document that it must be; null and a failure otherwise.
nlohmann::json document(const Outcome& outcome);

/// The sample of images that ships with the product.
inline constexpr const char* kSample = MILLRACE_SOURCE_DIR "/data/fashion-mnist-sample.h5";

std::string text_of(const std::filesystem::path& file);

/// A small network on synthetic data; `more` are further lines.
std::string tiny(const std::string& more = "");

/// Plan and training of `tiny` for 2 pipelines x 2 stages and more iterations than a test waits for.
std::string endless();

}  // namespace millrace::cli
