// Proves before anything runs that a program is complete, consistent and free of deadlock (METHODS 4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "program/program.h"

namespace millrace {

/// One fault of a program, in words that name ranks and instructions.
struct Problem {
  std::string text;
};

/// All faults found (at most 20; empty: the program is correct):
/// - every instruction names an existing stage of its rank, micro-batch, message or bucket;
/// - every message has exactly one send and one receive, on the right ranks, in time for what reads it and while what
///   it carries still exists; tags are within `tag_limit`, and messages of two ranks with one tag belong to one edge
///   and are sent and received in one order;
/// - every rank gets exactly the rows of every activation and gradient that its computation reads, and gradients of
///   one tensor are received, hence summed, latest stage first;
/// - every replica computes every micro-batch forward once and then backward once, and never keeps more of them than
///   the stage has slots;
/// - every parameter and buffer is in one bucket of exactly its owners; every bucket is reduced once on each owner
///   after its last contribution, in the one order of buckets, then comes the norm, then each bucket's update once;
/// - all ranks reach their ends when messages are only received after they were sent, updates wait for all owners,
///   and the norm for all ranks; otherwise it is said which ranks wait at which instructions.
std::vector<Problem> verify(const Graph& graph, const Program& program, std::int32_t tag_limit = 32767);

/// \throws Error  (ExitCode::internal) with the problems: whatever made the program is at fault.
void require_verified(const Graph& graph, const Program& program, std::int32_t tag_limit = 32767);

}  // namespace millrace
