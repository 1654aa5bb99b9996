// Inputs are found beside the file that names them, then in the working directory (REPORTS Y08).
#include "config/input_file.h"

#include "tests/config/support.h"

namespace millrace::config {
namespace {

/// Changes the working directory while it lives.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const std::filesystem::path& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~WorkingDirectory() { std::filesystem::current_path(before_); }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;

 private:
  std::filesystem::path before_;
};

TEST(FindInput, LooksBesideTheFileFirst) {
  const Folder folder;
  const auto beside = folder.write("experiments/data.h5", "");
  const auto working = folder.write("data.h5", "");
  const auto up = folder.write("other/data.h5", "");
  const WorkingDirectory here(folder.path());
  EXPECT_EQ(find_input("data.h5", folder.path() / "experiments"), beside);
  EXPECT_EQ(find_input("data.h5", "experiments"), beside);
  EXPECT_EQ(find_input("../other/data.h5", "experiments"), up);
  EXPECT_EQ(find_input("data.h5", folder.path() / "other" / "none"), working);
  EXPECT_EQ(find_input("data.h5", ""), working);
  EXPECT_EQ(find_input(up, "experiments"), up);
}

TEST(FindInput, ListsBothPlaces) {
  const Folder folder;
  folder.write("experiments/data/x", "");
  const WorkingDirectory here(folder.path());
  const std::string root = folder.path().string();
  EXPECT_EQ(refusal([] { find_input("d.h5", "experiments"); }),
            "no such file 'd.h5'; looked for " + root + "/experiments/d.h5 and " + root + "/d.h5");
  EXPECT_EQ(refusal([] { find_input("data", "experiments"); }),
            "no such file 'data'; looked for " + root + "/experiments/data (a folder) and " + root + "/data");
  EXPECT_EQ(refusal([] { find_input("/no/d.h5", "experiments"); }), "no such file '/no/d.h5'; looked for /no/d.h5");
}

}  // namespace
}  // namespace millrace::config
