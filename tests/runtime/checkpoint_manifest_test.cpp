// A checkpoint that was changed or cut is known and passed over.
#include "runtime/checkpoint_manifest.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/step_folders.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::runtime {
namespace {

CheckpointManifest example() {
  CheckpointManifest manifest{{100, 98, 12800, 2, std::nan("")}, "5f0c", "seed 1, batch 128", "adamw", "ab", "dp", {}};
  manifest.files.push_back({"rank-00000.h5", 4096, "00ff", {"conv1.weight", "a: b", "on"}});
  return manifest;
}

TEST(CheckpointManifest, ItsTextReadsBack) {
  const CheckpointManifest read = manifest_from_text(to_text(example()), "checkpoint.yaml");
  EXPECT_EQ(read.counters.step, 100);
  EXPECT_EQ(read.counters.updates, 98);
  EXPECT_EQ(read.counters.skips, 2);
  EXPECT_TRUE(std::isnan(read.counters.loss));
  EXPECT_EQ(read.order, "seed 1, batch 128");
  EXPECT_EQ(read.files.front().tensors, example().files.front().tensors);
}

TEST(CheckpointManifest, AnyOtherByteIsDamage) {
  const std::string text = to_text(example());
  for (std::size_t i = 0; i < text.size(); i += 7) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_THROW(manifest_from_text(other, "checkpoint.yaml"), std::exception) << i;
    EXPECT_THROW(manifest_from_text(text.substr(0, i), "checkpoint.yaml"), std::exception) << i;
  }
}

void make(const storage::StepFolders& folders, std::int64_t step) {
  folders.begin(step);
  const std::filesystem::path folder = folders.partial(step);
  std::ofstream(folder / "data") << "some numbers";
  CheckpointManifest manifest = example();
  manifest.counters.step = step;
  manifest.files = {describe_file(folder / "data")};
  std::ofstream(folder / kManifestFile) << to_text(manifest);
  folders.finish(step);
}

TEST(CheckpointManifest, TheNewestSoundOneIsFoundAndTheOthersAreNamed) {
  const storage::TemporaryFolder place;
  const storage::StepFolders folders(place.path());
  for (const int step : {1, 2, 3, 4, 5, 6}) make(folders, step);
  std::filesystem::remove(folders.complete(6) / "data");
  std::ofstream(folders.complete(5) / "data") << "some numberz";
  std::ofstream(folders.complete(4) / "data") << "some";
  std::filesystem::remove(folders.complete(3) / kManifestFile);
  std::vector<std::string> damaged;
  const auto found = newest_checkpoint(place.path(), [&](const std::string& why) { damaged.push_back(why); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->manifest.counters.step, 2);
  EXPECT_THAT(damaged, testing::ElementsAre(testing::HasSubstr("step-00000006/data: cannot be read"),
                                            testing::HasSubstr("step-00000005/data: is damaged: its digest"),
                                            testing::HasSubstr("step-00000004/data: is damaged: 4 bytes, 12 were"),
                                            testing::HasSubstr("step-00000003/checkpoint.yaml: cannot be read")));
  EXPECT_FALSE(newest_checkpoint(place / "none", [](const std::string&) {}));
}

}  // namespace
}  // namespace millrace::runtime
