// The letters of every operator of a graph in compact form, and the signatures that follow from them: what each operand
// must be when an axis of the mesh serves a letter (METHODS 7).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "shard/property.h"

namespace millrace::shard {

enum class Side : std::uint8_t { input, parameter, buffer, output };

/// One operand of an operator. Letters are numbers of the operator's own; -1: the dimension is not split.
struct Operand {
  static constexpr int kMaximumRank = 9;  ///< the batch axis and eight dimensions
  TensorId tensor = -1;
  Side side = Side::input;
  char linear = '-';  ///< Letters::linear
  std::int8_t rank = 0;
  std::array<std::int8_t, kMaximumRank> letters{};

  /// The dimension of `letter`; -1 when it has none.
  int dim_of(int letter) const;
};

/// How an operator uses one axis: one signature.
struct Use {
  enum class Kind : std::uint8_t {
    whole,   ///< every device computes all of it
    letter,  ///< the dimensions of a letter are split
    partial  ///< a linear operator of partial sums; `operand` is the factor that is one, -1: all terms
  };
  Kind kind = Kind::whole;
  std::int8_t letter = -1;
  std::int16_t operand = -1;
  std::int16_t ratio = 0;

  bool operator==(const Use&) const = default;
};

class OpTable {
 public:
  explicit OpTable(const Graph& graph);

  struct Row {
    std::uint32_t first = 0;  // of its operands
    std::uint32_t count = 0;
    std::int8_t letter_count = 0;
    bool pass_through = true;      ///< all inputs and outputs have the same letters in the same order
    std::uint32_t reduced = 0;     ///< letters that the operator reduces itself, as a mask
    std::uint32_t contracted = 0;  ///< letters that the first output lacks
  };

  const Row& row(OpId op) const { return rows_[static_cast<std::size_t>(op)]; }
  std::span<const Operand> operands(OpId op) const { return {operands_.data() + row(op).first, row(op).count}; }
  /// Of each letter: dimensions are split at multiples of extent / parts; 0: anywhere.
  std::int64_t parts(OpId op, int letter) const;

  /// Whether a split of the letter's dimensions is a signature.
  bool splits(OpId op, int letter) const;

  /// What operand `operand` is on an axis under `use`.
  Property property(OpId op, std::size_t operand, const Use& use) const;

  /// Every signature for one axis, `whole` first, then letters, then partial sums. Extents are not looked at.
  std::vector<Use> uses(OpId op) const;

  /// Whether the operator itself reduces over the devices of the axis under `use`.
  bool reduces(OpId op, const Use& use) const {
    return use.kind == Use::Kind::letter && (row(op).reduced >> use.letter & 1U) != 0;
  }

 private:
  void add_operator(const Graph& graph, OpId op);

  std::vector<Row> rows_;
  std::vector<Operand> operands_;
  struct Parts {
    OpId op;
    std::int8_t letter;
    std::int64_t parts;
  };
  std::vector<Parts> parts_;  // by operator; few have any
};

}  // namespace millrace::shard
