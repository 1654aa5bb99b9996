// Message tags that stay below the transport's limit at any size (METHODS 4).
#pragma once

#include <cstdint>

#include "program/program.h"

namespace millrace {

/// Fills Transfer::edge and Transfer::tag. Between two ranks, one way, edge e owns the tags e·K … e·K + K − 1 and
/// micro-batch k takes the (k mod K)-th, K as large as `tag_limit` (the highest tag) allows. A tag is used again only
/// by a later message of the same edge, which both sides handle in the same order, so MPI's order of messages with
/// one tag tells them apart.
/// \throws InvalidInput  when two ranks share more edges than there are tags.
void assign_tags(Program& program, std::int32_t tag_limit);

}  // namespace millrace
