// Puts an instruction into words.
#include "program/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace millrace {
namespace {

std::string describe_transfer(const Graph& graph, const Program& program, const Instruction& instruction) {
  const Transfer& transfer = program.transfers[static_cast<std::size_t>(instruction.transfer)];
  const bool receives =
      instruction.kind == InstructionKind::receive_activation || instruction.kind == InstructionKind::receive_gradient;
  return fmt::format("{} of {}, micro-batch {}, {} rank {}", name(instruction.kind), graph.tensor(transfer.tensor).name,
                     transfer.micro_batch, receives ? "from" : "to", receives ? transfer.sender : transfer.receiver);
}

std::string describe_bucket(const Graph& graph, const Program& program, const Instruction& instruction) {
  const Bucket& bucket = program.buckets[static_cast<std::size_t>(instruction.bucket)];
  std::string text = fmt::format("{} of bucket {} ({}", name(instruction.kind), instruction.bucket,
                                 graph.tensor(bucket.tensors.front()).name);
  if (bucket.tensors.size() > 1) text += fmt::format(" and {} more", bucket.tensors.size() - 1);
  text += ")";
  if (instruction.kind == InstructionKind::reduce_gradients) {
    text += fmt::format(" over ranks {}", fmt::join(bucket.owners, ", "));
  }
  return text;
}

}  // namespace

std::string describe(const Graph& graph, const Program& program, const Instruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::receive_activation:
    case InstructionKind::send_activation:
    case InstructionKind::receive_gradient:
    case InstructionKind::send_gradient:
      return describe_transfer(graph, program, instruction);
    case InstructionKind::reduce_gradients:
    case InstructionKind::update_weights:
    case InstructionKind::gather_weights:
      return describe_bucket(graph, program, instruction);
    case InstructionKind::reduce_norm:
      return std::string(name(instruction.kind));
    default:
      break;
  }
  const StageRef ref = program.stages[static_cast<std::size_t>(instruction.stage)].ref;
  std::string text = fmt::format("{} of stage {} of pipeline {}, micro-batch {}", name(instruction.kind), ref.stage,
                                 ref.pipeline, instruction.micro_batch);
  if (instruction.segment >= 0) text += fmt::format(", segment {}", instruction.segment);
  if (instruction.lag > 0) text += fmt::format(", of {} iterations before", instruction.lag);
  return text;
}

std::string describe(const Graph& graph, const Program& program, int rank, std::size_t position) {
  const RankProgram& list = program.ranks[static_cast<std::size_t>(rank)];
  return fmt::format("rank {}: {}", rank, describe(graph, program, list.instructions[position]));
}

}  // namespace millrace
