// What stashes keep: one copy of each version that is not the newest any more.
#include "program/kept_versions.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(KeptVersions, StashesOfEqualWeightsShareACopy) {
  KeptVersions versions;
  EXPECT_FALSE(versions.update(0));  // nothing is stashed
  versions.stash(0, 0);
  versions.stash(0, 1);
  EXPECT_EQ(versions.copies(), 0);
  EXPECT_TRUE(versions.update(0));
  EXPECT_EQ(versions.copies(), 1);
  versions.drop(0, 0);
  EXPECT_EQ(versions.copies(), 1);
  EXPECT_FALSE(versions.update(0));  // the newest weights are in no stash
  versions.drop(0, 1);
  EXPECT_EQ(versions.copies(), 0);
}

TEST(KeptVersions, EveryBucketIsCopiedOnceAVersion) {
  KeptVersions versions;
  versions.stash(0, 0);
  EXPECT_TRUE(versions.update(3));
  EXPECT_TRUE(versions.update(5));
  EXPECT_EQ(versions.copies(), 1);
  versions.stash(0, 1);
  EXPECT_TRUE(versions.update(3));
  EXPECT_TRUE(versions.update(5));
  EXPECT_EQ(versions.copies(), 2);
}

TEST(KeptVersions, WhatIsDroppedBeforeTheUpdateIsNotCopied) {
  KeptVersions versions;
  versions.stash(0, 0);
  versions.drop(0, 0);
  EXPECT_FALSE(versions.update(0));
  EXPECT_EQ(versions.copies(), 0);
}

}  // namespace
}  // namespace millrace
