// The error that all ranks meet at the same point.
#pragma once

#include "base/errors.h"

namespace millrace::comm {

/// An error that all ranks have at the same point: rank 0 says it, and all end in order with its code.
class SharedError : public Error {
 public:
  using Error::Error;
};

/// Runs what every rank computes alike: its errors are the same everywhere, so they are shared.
template <class Make>
decltype(auto) on_all_alike(Make make) {
  try {
    return make();
  } catch (const SharedError&) {
    throw;
  } catch (const Error& error) {
    throw SharedError(error.code(), error.what());
  }
}

}  // namespace millrace::comm
