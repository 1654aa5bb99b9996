// Asserts the type of an error and words that its message must hold.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::storage {

/// The message of the `Expected` error that `act` throws; a failure of the test, and "", if it throws none.
template <class Expected, class Act>
std::string message_of(Act act) {
  try {
    act();
  } catch (const Expected& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind of error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

template <class Expected, class Act>
void expect_error(Act act, const std::vector<std::string>& words) {
  const std::string message = message_of<Expected>(act);
  for (const std::string& word : words) EXPECT_THAT(message, ::testing::HasSubstr(word));
}

}  // namespace millrace::storage
