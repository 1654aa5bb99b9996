// Proves before anything runs that a program is complete, consistent and free of deadlock (METHODS 4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "program/compute_order.h"
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
/// - every replica computes every micro-batch forward once and then backward once with the weights of its forward and
///   what it dropped computed again, and never keeps more of them than the stage has slots; what stages of one rank
///   pass to each other is there in time; segments and collectives of a divided computation follow each other;
/// - every parameter and buffer is in one bucket of exactly its owners; every bucket is reduced once on each owner
///   after its last contribution, in the one order of buckets, then comes the norm, then each bucket's update once (in
///   programs that do not flush: after equal numbers of micro-batches, and all stages use one version in an iteration
///   that has one update);
/// - all ranks reach their ends when messages are only received after they were sent, updates wait for all owners,
///   and the norm for all ranks; otherwise it is said which ranks wait at which instructions.
std::vector<Problem> verify(const Graph& graph, const Program& program, std::int32_t tag_limit = 32767);

/// Ranks whose live micro-batches keep more than their limit, each with the instruction at its peak. A forward adds
/// costs.activations of its stage, a backward_input leaves costs.kept_for_weights, the end of the backward frees all.
/// Empty without limits or activations.
std::vector<Problem> verify_memory(const Graph& graph, const Program& program, const StageCosts& costs);

/// \throws Error  (ExitCode::internal) with the problems: whatever made the program is at fault.
void require_verified(const Graph& graph, const Program& program, std::int32_t tag_limit = 32767);

}  // namespace millrace
