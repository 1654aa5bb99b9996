// Reads the letters of each operator once; signatures are then a few comparisons.
#include "shard/op_table.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace millrace::shard {
namespace {

// Numbers of the letters of one operator; capital letters are not split and have none.
class Numbering {
 public:
  std::int8_t operator[](char letter) {
    if (std::islower(static_cast<unsigned char>(letter)) == 0) return -1;
    const auto found = known_.find(letter);
    if (found != std::string::npos) return static_cast<std::int8_t>(found);
    known_.push_back(letter);
    return static_cast<std::int8_t>(known_.size() - 1);
  }
  std::int8_t size() const { return static_cast<std::int8_t>(known_.size()); }

 private:
  std::string known_;
};

Operand make_operand(TensorId tensor, Side side, const std::string& word, char linear, Numbering& numbers) {
  Operand operand{.tensor = tensor, .side = side, .linear = linear, .rank = static_cast<std::int8_t>(word.size())};
  operand.letters.fill(-1);
  for (std::size_t i = 0; i < word.size(); ++i) operand.letters[i] = numbers[word[i]];
  return operand;
}

}  // namespace

int Operand::dim_of(int letter) const {
  for (int i = 0; i < rank; ++i) {
    if (letters[static_cast<std::size_t>(i)] == letter) return i;
  }
  return -1;
}

OpTable::OpTable(const Graph& graph) {
  rows_.reserve(static_cast<std::size_t>(graph.size()));
  operands_.reserve(static_cast<std::size_t>(graph.size()) * 4);
  for (OpId op = 0; op < graph.size(); ++op) add_operator(graph, op);
}

void OpTable::add_operator(const Graph& graph, OpId op) {
  const Operator& node = graph.op(op);
  const Letters letters = node.schema->letters(node.attributes, graph.shapes(op));
  Numbering numbers;
  Row row{.first = static_cast<std::uint32_t>(operands_.size())};
  std::size_t position = 0;
  const auto linear = [&] { return letters.linear.empty() ? '-' : letters.linear[position++]; };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    operands_.push_back(make_operand(node.inputs[i], Side::input, letters.inputs[i], linear(), numbers));
  }
  for (std::size_t i = 0; i < node.parameters.size(); ++i) {
    operands_.push_back(make_operand(node.parameters[i], Side::parameter, letters.parameters[i], linear(), numbers));
  }
  // A buffer goes with the parameter of its dimensions: running statistics with the scale of their channels.
  for (const TensorId buffer : node.buffers) {
    for (std::size_t i = 0; i < node.parameters.size(); ++i) {
      if (graph.tensor(node.parameters[i]).shape.dims != graph.tensor(buffer).shape.dims) continue;
      operands_.push_back(make_operand(buffer, Side::buffer, letters.parameters[i], '-', numbers));
      break;
    }
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    operands_.push_back(make_operand(node.outputs[i], Side::output, letters.outputs[i], '-', numbers));
    row.pass_through =
        row.pass_through && std::all_of(letters.inputs.begin(), letters.inputs.end(),
                                        [&](const std::string& word) { return word == letters.outputs[i]; });
  }
  row.count = static_cast<std::uint32_t>(operands_.size()) - row.first;
  for (const char letter : letters.reduced) row.reduced |= 1U << numbers[letter];
  for (const auto& [letter, parts] : letters.parts) {
    if (const std::int8_t number = numbers[letter]; number >= 0) parts_.push_back({op, number, parts});
  }
  row.letter_count = numbers.size();
  const Operand& output = operands_[operands_.size() - node.outputs.size()];
  for (int letter = 0; letter < row.letter_count; ++letter) {
    if (output.dim_of(letter) < 0) row.contracted |= 1U << letter;
  }
  rows_.push_back(row);
}

std::int64_t OpTable::parts(OpId op, int letter) const {
  auto found = std::lower_bound(parts_.begin(), parts_.end(), op, [](const Parts& a, OpId b) { return a.op < b; });
  for (; found != parts_.end() && found->op == op; ++found) {
    if (found->letter == letter) return found->parts;
  }
  return 0;
}

Property OpTable::property(OpId op, std::size_t operand, const Use& use) const {
  const Operand& one = operands(op)[operand];
  if (use.kind == Use::Kind::whole) return kReplicated;
  if (use.kind == Use::Kind::letter) {
    const int dim = one.dim_of(use.letter);
    if (dim >= 0) return split(dim, use.ratio);
    const bool sums = (row(op).contracted >> use.letter & 1U) != 0 && (row(op).reduced >> use.letter & 1U) == 0;
    // Terms without the contracted letter, such as a bias, count once: on one device, as a partial sum.
    const bool counts = one.side == Side::output || one.linear == '+';
    return sums && counts ? kPartialSum : kReplicated;
  }
  const bool partial = one.side == Side::output || one.linear == '+' || static_cast<int>(operand) == use.operand;
  return partial ? kPartialSum : kReplicated;
}

// A contracted letter gives a sum only where the operator is linear in all that has it.
bool OpTable::splits(OpId op, int letter) const {
  if ((row(op).contracted >> letter & 1U) == 0 || (row(op).reduced >> letter & 1U) != 0) return true;
  for (const Operand& operand : operands(op)) {
    if (operand.side != Side::output && operand.linear == '-' && operand.dim_of(letter) >= 0) return false;
  }
  return true;
}

std::vector<Use> OpTable::uses(OpId op) const {
  std::vector<Use> all{{}};
  for (int letter = 0; letter < row(op).letter_count; ++letter) {
    if (splits(op, letter)) all.push_back({.kind = Use::Kind::letter, .letter = static_cast<std::int8_t>(letter)});
  }
  bool product = false, terms = false;
  const auto list = operands(op);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].linear == '*') {
      product = true;
      all.push_back({.kind = Use::Kind::partial, .operand = static_cast<std::int16_t>(i)});
    }
    terms = terms || list[i].linear == '+';
  }
  if (terms && !product) all.push_back({.kind = Use::Kind::partial});
  return all;
}

}  // namespace millrace::shard
