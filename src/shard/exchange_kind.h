// The operator kind that stands in per-device graphs where a tensor changes hands.
#pragma once

#include "graph/op_schema.h"

namespace millrace::shard {

/// One input, one output of dimensions `dims`; no flops, no parameters. No graph of a user has it.
const OpSchema& exchange_kind();

}  // namespace millrace::shard
