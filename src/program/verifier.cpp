// Runs the checks in an order in which each can rely on those before it.
#include "program/verifier.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/errors.h"
#include "program/attached.h"
#include "program/verifier_parts.h"

namespace millrace {
namespace {

using verification::Findings;

bool in_range(std::int32_t index, std::size_t size) { return index >= 0 && static_cast<std::size_t>(index) < size; }

bool is_transfer(InstructionKind kind) {
  return kind == InstructionKind::receive_activation || kind == InstructionKind::send_activation ||
         kind == InstructionKind::receive_gradient || kind == InstructionKind::send_gradient;
}

bool is_collective(InstructionKind kind) {
  return kind == InstructionKind::all_reduce || kind == InstructionKind::all_gather ||
         kind == InstructionKind::reduce_scatter || kind == InstructionKind::all_to_all;
}

bool is_rank(const Program& program, int rank) { return in_range(rank, program.ranks.size()); }

bool has_micro_batch(const Program& program, std::int32_t stage, std::int32_t micro_batch) {
  return in_range(stage, program.stages.size()) &&
         in_range(micro_batch, program.stages[static_cast<std::size_t>(stage)].rows.size());
}

void check_tables(const Program& program, Findings& findings) {
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const ProgramStage& stage = program.stages[s];
    const auto shards = static_cast<std::size_t>(std::max(1, stage.tensor_parallel));
    const auto fits = [&](const auto& rows) { return rows.size() * shards == stage.ranks.size(); };
    if (stage.ranks.empty() || stage.tensor_parallel < 1 || !std::all_of(stage.rows.begin(), stage.rows.end(), fits) ||
        !std::all_of(stage.ranks.begin(), stage.ranks.end(), [&](int rank) { return is_rank(program, rank); })) {
      findings.add(
          fmt::format("stage {} names ranks that do not exist, or has not one interval of rows for each replica", s));
    }
  }
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const std::vector<OpId>& ops = program.stages[s].ops;
    OpId behind = std::numeric_limits<OpId>::max();
    for (const OpId cut : program.stages[s].weight_cuts) {
      if (cut >= behind || cut <= ops.front() || !std::binary_search(ops.begin(), ops.end(), cut)) {
        findings.add(
            fmt::format("stage {} divides its weight gradients at operator {}, where no segment begins", s, cut));
      }
      behind = cut;
    }
  }
  for (std::size_t i = 0; i < program.transfers.size(); ++i) {
    const Transfer& t = program.transfers[i];
    if (!is_rank(program, t.sender) || !is_rank(program, t.receiver) ||
        !has_micro_batch(program, t.from_stage, t.micro_batch) ||
        !has_micro_batch(program, t.to_stage, t.micro_batch)) {
      findings.add(fmt::format("message {} names a rank, stage or micro-batch that does not exist", i));
    }
  }
  for (std::size_t c = 0; c < program.collectives.size(); ++c) {
    if (!in_range(program.collectives[c].stage, program.stages.size()) || !is_collective(program.collectives[c].kind)) {
      findings.add(fmt::format("collective {} names a stage that does not exist, or no kind of collective", c));
    }
  }
  for (std::size_t b = 0; b < program.buckets.size(); ++b) {
    const Bucket& bucket = program.buckets[b];
    if (!std::all_of(bucket.stages.begin(), bucket.stages.end(),
                     [&](std::int32_t stage) { return in_range(stage, program.stages.size()); })) {
      findings.add(fmt::format("bucket {} names stages that do not exist", b));
    }
    if (bucket.tensors.empty() || bucket.owners.empty()) findings.add(fmt::format("bucket {} is empty", b));
    if (!std::all_of(bucket.owners.begin(), bucket.owners.end(), [&](int rank) { return is_rank(program, rank); })) {
      findings.add(fmt::format("bucket {} names owners that do not exist", b));
    }
  }
}

}  // namespace

namespace verification {

void check_indices(const Program& program, Findings& findings) {
  check_tables(program, findings);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const std::vector<Instruction>& list = program.ranks[rank].instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Instruction& at = list[i];
      const auto fault = [&](std::string_view what, std::int32_t index) {
        findings.add(
            fmt::format("rank {}, instruction {} ({}): {} {} does not exist", rank, i, name(at.kind), what, index));
      };
      if (is_of_bucket(at.kind)) {
        if (!in_range(at.bucket, program.buckets.size())) fault("bucket", at.bucket);
      } else if (at.kind != InstructionKind::reduce_norm) {
        if (!in_range(at.stage, program.stages.size())) {
          fault("stage", at.stage);
        } else if (!in_range(at.micro_batch, program.stages[static_cast<std::size_t>(at.stage)].rows.size())) {
          fault("micro-batch", at.micro_batch);
        } else if (at.kind == InstructionKind::backward_weight &&
                   at.segment >
                       static_cast<int>(program.stages[static_cast<std::size_t>(at.stage)].weight_cuts.size())) {
          fault("segment", at.segment);
        }
        if (at.lag > program.overlap || at.lag < -1) fault("an iteration of lag", at.lag);
        if (is_collective(at.kind) && !in_range(at.collective, program.collectives.size())) {
          fault("collective", at.collective);
        }
        if (is_transfer(at.kind) && !in_range(at.transfer, program.transfers.size())) fault("message", at.transfer);
      }
    }
  }
}

}  // namespace verification

std::vector<Problem> verify(const Graph& graph, const Program& program, std::int32_t tag_limit) {
  Findings findings;
  verification::check_indices(program, findings);
  if (!findings.empty()) return findings.take();
  verification::check_compute(graph, program, findings);
  verification::check_matching(graph, program, tag_limit, findings);
  verification::check_coverage(graph, program, findings);
  verification::check_reductions(graph, program, findings);
  verification::check_execution(graph, program, findings);
  return findings.take();
}

void require_verified(const Graph& graph, const Program& program, std::int32_t tag_limit) {
  const std::vector<Problem> problems = verify(graph, program, tag_limit);
  if (problems.empty()) return;
  std::string text = "the program does not verify:";
  for (const Problem& problem : problems) text += "\n  " + problem.text;
  throw Error(ExitCode::internal, text);
}

}  // namespace millrace
