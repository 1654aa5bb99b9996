// The table of schedules: every row is complete, names are found, slips are explained.
#include "schedules/registry.h"

#include <gmock/gmock.h>

#include "base/errors.h"

namespace millrace::schedules {
namespace {

TEST(Registry, RowsAreComplete) {
  for (const Entry& entry : registry()) {
    EXPECT_FALSE(entry.name.empty());
    EXPECT_FALSE(entry.description.empty()) << entry.name;
    EXPECT_NE(entry.order, nullptr) << entry.name;
    EXPECT_NO_THROW(config::defaults(entry.options)) << entry.name;
    EXPECT_EQ(&by_name(entry.name), &entry);
  }
}

TEST(Registry, UnknownNamesListTheValidOnes) {
  EXPECT_THAT([] { by_name("gpip"); },
              testing::ThrowsMessage<InvalidInput>("unknown schedule 'gpip' (did you mean 'gpipe'?); valid: gpipe, "
                                                   "1f1b, hippie, interleaved, zb-h1, zb-h2, zb-v, "
                                                   "chimera, pipedream, pipedream-2bw, zb-greedy"));
}

TEST(Registry, NamesCapabilities) {
  EXPECT_THAT(capability_names(by_name("1f1b").capabilities), testing::ElementsAre("synchronous", "takes_warmup"));
  EXPECT_THAT(capability_names(by_name("gpipe").capabilities), testing::ElementsAre("synchronous"));
}

}  // namespace
}  // namespace millrace::schedules
