// A step is complete or not there.
#include "storage/step_folders.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/temporary_folder.h"

namespace millrace::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void make(const StepFolders& folders, std::int64_t step, const std::string& text) {
  folders.begin(step);
  std::ofstream(folders.partial(step) / "a") << text;
  folders.finish(step);
}

TEST(StepFolders, ACompleteStepHasItsNameAndOnlyThen) {
  const TemporaryFolder place;
  const StepFolders folders(place / "run.checkpoints");
  EXPECT_THAT(folders.steps(), IsEmpty());
  folders.begin(7);
  EXPECT_THAT(folders.steps(), IsEmpty());
  folders.finish(7);
  EXPECT_THAT(folders.steps(), ElementsAre(7));
  EXPECT_TRUE(std::filesystem::exists(place / "run.checkpoints/step-00000007"));
}

TEST(StepFolders, TheNewestAreKeptAndWhatDeadRunsLeftIsRemoved) {
  const TemporaryFolder place;
  const StepFolders folders(place.path());
  for (const int step : {9, 100, 20}) make(folders, step, "x");
  std::filesystem::create_directory(place / "step-00000030.partial");
  std::filesystem::create_directory(place / "step-00000001.old");
  std::filesystem::create_directory(place / "step-by-step");
  EXPECT_THAT(folders.steps(), ElementsAre(100, 20, 9));
  folders.begin(120);
  folders.abandon(120);
  folders.keep(2);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(place.path())) left.push_back(entry.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAre("step-00000020", "step-00000100", "step-by-step"));
}

TEST(StepFolders, AStepMadeAgainReplacesTheFormer) {
  const TemporaryFolder place;
  const StepFolders folders(place.path());
  make(folders, 5, "old");
  make(folders, 5, "new");
  std::string text;
  std::ifstream(folders.complete(5) / "a") >> text;
  EXPECT_EQ(text, "new");
}

}  // namespace
}  // namespace millrace::storage
