// Profiles come back from their file as they were, number by number.
#include "record/profile_file.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "storage/file.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::record {
namespace {

cost::Measured measured(double seconds) { return {Seconds(seconds), Seconds(seconds / 7)}; }

cost::Profile sample() {
  cost::Profile profile;
  profile.model = "net";
  profile.graph_digest = "0123";
  profile.cpu = "A Processor (R) @ 2 GHz";
  profile.threads = 3;
  profile.kernels = "onednn";
  profile.precision = "fp32";
  profile.operators = {{"conv1", Bytes(1) * 4096, measured(1e-5)}, {"relu", Bytes(0), {}}};
  for (const std::int64_t rows : {1, 4}) {
    cost::MeasuredSize size;
    size.rows = rows;
    size.repetitions = 5;
    size.forward = measured(0.1 * static_cast<double>(rows));
    size.backward = measured(0.3);
    size.slot = Bytes(1000 * rows);
    size.workspace = Bytes(77);
    size.operators = {{measured(0.01), {}, measured(1.0 / 3)}, {measured(0.02), measured(0.03), {}}};
    profile.sizes.push_back(size);
  }
  return profile;
}

cost::Profile through_file(const cost::Profile& profile) {
  const storage::TemporaryFolder folder;
  write_profile(folder / "p.h5", storage::Existing::refuse, profile, {{"host", std::string("here")}});
  EXPECT_EQ(storage::File::open(folder / "p.h5").text("host"), "here");
  return read_profile(folder / "p.h5");
}

TEST(ProfileFile, RoundTrip) {
  cost::Profile profile = sample();
  EXPECT_EQ(through_file(profile), profile);
  profile.job.speeds = {1, 0.7};
  profile.job.within = cluster::Link{BytesPerSecond(3.1e9), Seconds(2e-6)};
  profile.job.reduced = {Bytes(4096), Bytes(1 << 20)};
  profile.job.reductions = {Seconds(1e-5), Seconds(1e-3)};
  EXPECT_EQ(through_file(profile), profile);
  profile.job.between = cluster::Link{BytesPerSecond(1e9), Seconds(3e-5)};
  EXPECT_EQ(through_file(profile), profile);
}

TEST(ProfileFile, RefusesOthers) {
  const storage::TemporaryFolder folder;
  storage::File::make(folder / "other.h5").close();
  EXPECT_THROW(read_profile(folder / "other.h5"), InvalidInput);
  cost::Profile short_of_one = sample();
  write_profile(folder / "p.h5", storage::Existing::refuse, short_of_one, {});
  EXPECT_THROW(write_profile(folder / "p.h5", storage::Existing::refuse, short_of_one, {}), InvalidInput);
  short_of_one.sizes.clear();
  write_profile(folder / "p.h5", storage::Existing::replace, short_of_one, {});
  EXPECT_THROW(read_profile(folder / "p.h5"), InvalidInput);
}

}  // namespace
}  // namespace millrace::record
