// Choices that are kept on disk: found again, never half read, and none where they cannot be kept.
#include "kernels/variants.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

namespace millrace::kernels {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class KeptVariants : public ::testing::Test {
 protected:
  KeptVariants() : folder_(fs::temp_directory_path() / fmt::format("millrace-variants-{}", ::getpid())) {
    fs::remove_all(folder_);
  }
  ~KeptVariants() override { fs::remove_all(folder_); }

  /// Asks for "work"; `answer` is what a measurement would find.
  const VariantChoice* ask(Variants& variants, const std::string& answer) {
    return variants.find_or_measure("work", [&] {
      ++measured_;
      return VariantChoice{answer, {{"direct", 0.25}, {answer, 1e-3}}};
    });
  }
  fs::path file() const { return *fs::directory_iterator(folder_); }

  fs::path folder_;
  int measured_ = 0;
};

TEST_F(KeptVariants, AreMeasuredOnce) {
  Variants first(folder_, "a machine");
  EXPECT_EQ(first.find("work"), nullptr);
  EXPECT_EQ(ask(first, "fast")->variant, "fast");
  EXPECT_EQ(ask(first, "faster")->variant, "fast");
  Variants later(folder_, "a machine");
  EXPECT_TRUE(later.used().empty());
  ASSERT_NE(ask(later, "faster"), nullptr);
  const VariantChoice kept = later.used().at("work");
  EXPECT_EQ(kept.variant, "fast");
  ASSERT_EQ(kept.times.size(), 2U);
  EXPECT_EQ(kept.times[0].variant, "direct");
  EXPECT_EQ(kept.times[0].seconds, 0.25);
  EXPECT_EQ(kept.times[1].seconds, 1e-3);
  EXPECT_EQ(measured_, 1);
}

TEST_F(KeptVariants, OfAnotherMachineDoNotCount) {
  Variants first(folder_, "a machine");
  ask(first, "fast");
  Variants other(folder_, "another machine");
  EXPECT_EQ(ask(other, "slow")->variant, "slow");
  EXPECT_EQ(Variants(folder_, "a machine").find("work")->variant, "fast");
}

TEST_F(KeptVariants, DamagedFilesAreEmptyOnes) {
  Variants first(folder_, "a machine");
  ask(first, "fast");
  std::string text;
  {
    std::ifstream in(file(), std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = damaged[i] == 'x' ? 'y' : 'x';
    std::ofstream(file(), std::ios::binary) << damaged;
    EXPECT_EQ(Variants(folder_, "a machine").find("work"), nullptr) << "byte " << i;
    std::ofstream(file(), std::ios::binary) << text.substr(0, i);
    EXPECT_EQ(Variants(folder_, "a machine").find("work"), nullptr) << i << " bytes";
  }
  Variants again(folder_, "a machine");
  EXPECT_EQ(ask(again, "new")->variant, "new");
  EXPECT_EQ(Variants(folder_, "a machine").find("work")->variant, "new");
}

TEST_F(KeptVariants, WhatCannotBeKeptIsNotChosen) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "no folder";
  Variants variants(folder_ / "file", "a machine");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ask(variants, "fast"), nullptr);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), AllOf(HasSubstr((folder_ / "file" / "variants-").string()),
                                                              HasSubstr("folder cannot be made"), HasSubstr("direct")));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ask(variants, "fast"), nullptr);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // told once
  Variants nowhere;
  EXPECT_EQ(ask(nowhere, "fast"), nullptr);
  EXPECT_EQ(measured_, 0);
}

TEST_F(KeptVariants, WhatAnotherJobHasKeptStands) {
  Variants first(folder_, "a machine");
  Variants second(folder_, "a machine");
  ask(first, "fast");
  EXPECT_EQ(ask(second, "slow")->variant, "fast");
  EXPECT_EQ(measured_, 1);
}

TEST_F(KeptVariants, TellOtherRanks) {
  Variants first(folder_, "a machine");
  ask(first, "fast");
  Variants rank;
  EXPECT_FALSE(rank.add(first.text() + "x"));
  EXPECT_FALSE(rank.add(""));
  EXPECT_EQ(rank.find("work"), nullptr);
  EXPECT_TRUE(rank.add(first.text()));
  EXPECT_EQ(rank.find("work")->variant, "fast");
}

}  // namespace
}  // namespace millrace::kernels
