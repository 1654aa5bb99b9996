// The error that all ranks meet at the same point.
#pragma once

#include "base/errors.h"

namespace millrace::comm {

/// An error that all ranks have at the same point: rank 0 says it, and all end in order with its code.
class SharedError : public Error {
 public:
  using Error::Error;
};

}  // namespace millrace::comm
