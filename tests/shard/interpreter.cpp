// Instruction by instruction, device by device; reductions inside operators are done as their parts would do them.
#include "tests/shard/interpreter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "graph/data_range.h"
#include "shard/local_operator.h"
#include "tests/shard/local_run.h"
#include "tests/shard/parts.h"

namespace millrace::shard::testing {
namespace {

std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }

std::vector<std::int64_t> sample_ids(const Interval& rows) {
  std::vector<std::int64_t> ids(index(rows.size()));
  std::iota(ids.begin(), ids.end(), rows.begin + 100);
  return ids;
}

class Interpreter {
 public:
  Interpreter(const Sharding& sharding, const std::map<TensorId, Numbers>& given)
      : s_(sharding), values_(sharding.cut.values.size()) {
    for (const auto& [tensor, numbers] : given) {
      const ValueId value = s_.cut.kept[index(tensor)];
      values_[index(value)] = cut(numbers, view(tensor), placement_of(value), s_.mesh);
    }
  }

  Results run() {
    for (const Instruction& one : s_.cut.forward) step(one, true);
    for (const Instruction& one : s_.cut.backward) step(one, false);
    Results results;
    for (const Instruction& one : s_.cut.forward) {
      if (one.kind != Instruction::Kind::compute) continue;
      each_operand(one, Side::output, [&](ValueId value) { note(results.tensors, value); });
    }
    for (TensorId id = 0; id < static_cast<TensorId>(s_.cut.parameter_gradients.size()); ++id) {
      if (s_.cut.parameter_gradients[index(id)] >= 0) note(results.gradients, s_.cut.parameter_gradients[index(id)]);
    }
    // Of activations: what the producer of the tensor takes.
    for (const Instruction& one : s_.cut.backward) {
      if (one.kind != Instruction::Kind::compute) continue;
      each_operand(one, Side::output, [&](ValueId value) {
        if (value >= 0) note(results.gradients, value);
      });
    }
    return results;
  }

 private:
  TensorView view(TensorId tensor) const { return s_.tensors.view(tensor); }
  const Placement& placement_of(ValueId value) const { return s_.cut.values[index(value)].placement; }

  template <class F>
  void each_operand(const Instruction& one, Side side, F f) const {
    const auto operands = s_.ops.operands(one.op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].side == side) f(one.values[i]);
    }
  }

  void note(std::map<TensorId, Numbers>& into, ValueId value) const {
    const TensorId tensor = s_.cut.values[index(value)].tensor;
    into[tensor] = join(values_[index(value)], view(tensor), placement_of(value), s_.mesh);
  }

  void step(const Instruction& one, bool forward) {
    if (one.kind == Instruction::Kind::convert) {
      values_[index(one.to)] =
          convert(values_[index(one.from)], view(s_.cut.values[index(one.to)].tensor), one.step, s_.mesh);
    } else if (one.kind == Instruction::Kind::add) {
      Parts sum = values_[index(one.values.front())];
      for (std::size_t k = 1; k < one.values.size(); ++k) {
        for (std::size_t d = 0; d < sum.size(); ++d) {
          const Numbers& more = values_[index(one.values[k])][d];
          for (std::size_t i = 0; i < more.size(); ++i) sum[d][i] += more[i];
        }
      }
      values_[index(one.to)] = std::move(sum);
    } else if (forward) {
      compute(one);
    } else {
      differentiate(one);
    }
  }

  LocalOperator local(OpId op, int device) const {
    return local_operator(s_.graph, s_.ops, s_.tensors, s_.mesh, op, s_.cut.decision.uses[index(op)], device);
  }

  // Devices whose parts one computation takes together: statistics over a batch, masks that count whole samples.
  unsigned joined_axes(OpId op, const LocalOperator& part) const {
    const std::string& kind = s_.graph.op(op).schema->name;
    if (kind == "dropout") return ~0U;
    return kind == "batch_norm" && s_.synchronised_batch_norm ? part.inner_axes : 0;
  }

  // The operand as a computation on `device` takes it: its part, or the parts of all devices in `axes`.
  Placement widened(OpId op, std::size_t operand, unsigned axes) const {
    Placement all = placement(s_.ops, op, operand, s_.cut.decision.uses[index(op)], s_.mesh.axis_count());
    for (int axis = 0; axis < s_.mesh.axis_count(); ++axis) {
      if ((axes >> axis & 1U) != 0 && all[index(axis)].is_split()) all[index(axis)] = kReplicated;
    }
    return all;
  }

  Numbers gather(ValueId value, const Placement& wanted, int device) {
    const TensorId tensor = s_.cut.values[index(value)].tensor;
    Parts now = values_[index(value)];
    for (const Step& step : conversion(view(tensor), placement_of(value), wanted, s_.mesh)) {
      now = convert(now, view(tensor), step, s_.mesh);
    }
    return now[index(device)];
  }

  void compute(const Instruction& one) {
    const auto operands = s_.ops.operands(one.op);
    const Operator& node = s_.graph.op(one.op);
    for (const ValueId value : one.values) {
      if (values_[index(value)].empty()) values_[index(value)].resize(index(s_.mesh.size()));
    }
    if (local(one.op, 0).inner_axes != 0 && node.schema->name == "cross_entropy") return split_classes(one);
    for (int device = 0; device < s_.mesh.size(); ++device) {
      LocalOperator part = local(one.op, device);
      const unsigned axes = joined_axes(one.op, part);
      if (axes != 0) part.attributes = node.attributes;
      std::vector<TensorShape> shapes;
      std::vector<Numbers> numbers;
      std::vector<Box> boxes;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const Placement wanted = widened(one.op, i, axes);
        boxes.push_back(box_of(view(operands[i].tensor), wanted, s_.mesh, device));
        if (operands[i].side == Side::output) continue;
        numbers.push_back(gather(one.values[i], wanted, device));
        TensorShape shape = s_.graph.tensor(operands[i].tensor).shape;
        shape.dims = local_dims(boxes.back(), shape.batched);
        if (operands[i].side == Side::input) shapes.push_back(shape);
      }
      const bool table = part.indices && node.schema->name == "embedding";
      if (table) mask_table(part, numbers);
      runs_[{one.op, device}] = std::make_unique<LocalRun>(node, part.attributes, shapes, sample_ids(boxes.back()[0]));
      const std::vector<Numbers> outputs = runs_[{one.op, device}]->forward(numbers);
      std::size_t next = 0;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].side != Side::output) continue;
        values_[index(one.values[i])][index(device)] = take(outputs[next++], boxes[i], part.boxes[i]);
      }
    }
  }

  // A part of a table looks up its own rows; all others are one row of zeros behind them.
  static void mask_table(LocalOperator& part, std::vector<Numbers>& numbers) {
    const Interval& rows = *part.indices;
    for (double& id : numbers[0]) {
      const bool own = id >= static_cast<double>(rows.begin) && id < static_cast<double>(rows.end);
      id = own ? id - static_cast<double>(rows.begin) : static_cast<double>(rows.size());
    }
    part.attributes.set("vocabulary", rows.size() + 1);
    numbers[1].resize(numbers[1].size() + numbers[1].size() / index(rows.size()), 0.0);
  }

  void differentiate(const Instruction& one) {
    const auto operands = s_.ops.operands(one.op);
    const Operator& node = s_.graph.op(one.op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const ValueId value = one.values[i];
      if (value < 0) continue;
      Parts& parts = values_[index(value)];
      if (parts.empty()) parts.resize(index(s_.mesh.size()));
      if (one.op == s_.graph.loss() && operands[i].side == Side::output) {
        parts = cut(seed_gradient(s_.tensors.rows()), view(operands[i].tensor), placement_of(value), s_.mesh);
      }
    }
    if (local(one.op, 0).inner_axes != 0 && node.schema->name == "cross_entropy") return split_classes_back(one);
    for (int device = 0; device < s_.mesh.size(); ++device) {
      const LocalOperator part = local(one.op, device);
      const unsigned axes = joined_axes(one.op, part);
      std::size_t first_output = 0;
      while (operands[first_output].side != Side::output) ++first_output;
      const Placement wanted = widened(one.op, first_output, axes);
      Placement gradient{};
      for (int axis = 0; axis < s_.mesh.axis_count(); ++axis) {
        gradient[index(axis)] = wanted[index(axis)].is_split() ? wanted[index(axis)] : kReplicated;
      }
      const Numbers dy = gather(one.values[first_output], gradient, device);
      std::vector<Numbers> gradients = runs_.at({one.op, device})->backward(dy);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (one.values[i] < 0 || operands[i].side == Side::output) continue;
        Numbers& own = gradients[i];
        if (part.indices && node.schema->name == "embedding") own.resize(index(volume(part.boxes[i])));
        const Box box = box_of(view(operands[i].tensor), widened(one.op, i, axes), s_.mesh, device);
        Numbers taken = take(own, box, part.boxes[i]);
        // A computation that was joined gives the whole of a parameter's gradient: one device counts.
        const bool twice = axes != 0 && operands[i].side == Side::parameter &&
                           placement_of(one.values[i]) != gradient_placement(one.op, i, axes) && !counts(device, axes);
        if (twice) std::fill(taken.begin(), taken.end(), 0.0);
        values_[index(one.values[i])][index(device)] = std::move(taken);
      }
    }
  }

  Placement gradient_placement(OpId op, std::size_t operand, unsigned axes) const { return widened(op, operand, axes); }

  bool counts(int device, unsigned axes) const {
    for (int axis = 0; axis < s_.mesh.axis_count(); ++axis) {
      if ((axes >> axis & 1U) != 0 && s_.mesh.coordinate(device, axis) != 0) return false;
    }
    return true;
  }

  // Cross-entropy over parts of the classes: the maximum of a row, then the sum of exponentials and the logit of the
  // label, each reduced over the devices of the axes; the logits stay where they are.
  struct Rows {
    std::int64_t positions = 0, classes = 0;
    Interval part;
  };
  Rows rows_of(const LocalOperator& part) const {
    const Box& logits = part.boxes[0];
    Rows rows{.classes = logits.back().size(), .part = logits.back()};
    rows.positions = volume(logits) / rows.classes;
    return rows;
  }

  Numbers reduced(const Parts& own, int device, unsigned axes, bool largest) const {
    Numbers all = own[index(device)];
    for (const int other : s_.mesh.group(device, axes)) {
      if (other == device) continue;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const double theirs = own[index(other)][i];
        all[i] = largest ? std::max(all[i], theirs) : all[i] + theirs;
      }
    }
    return all;
  }

  void split_classes(const Instruction& one) {
    const Parts& logits = values_[index(one.values[0])];
    const Parts& labels = values_[index(one.values[1])];
    Parts most(logits.size()), sums(logits.size()), right(logits.size()), shift(logits.size());
    for (int device = 0; device < s_.mesh.size(); ++device) {
      const Rows rows = rows_of(local(one.op, device));
      for (std::int64_t i = 0; i < rows.positions; ++i) {
        const auto x = logits[index(device)].begin() + i * rows.classes;
        most[index(device)].push_back(*std::max_element(x, x + rows.classes));
      }
    }
    for (int device = 0; device < s_.mesh.size(); ++device) {
      const LocalOperator part = local(one.op, device);
      const Rows rows = rows_of(part);
      shift[index(device)] = reduced(most, device, part.inner_axes, true);
      for (std::int64_t i = 0; i < rows.positions; ++i) {
        const auto x = logits[index(device)].begin() + i * rows.classes;
        const double top = shift[index(device)][index(i)];
        sums[index(device)].push_back(
            std::accumulate(x, x + rows.classes, 0.0, [top](double s, double v) { return s + std::exp(v - top); }));
        const auto label = static_cast<std::int64_t>(labels[index(device)][index(i)]);
        const bool own = label >= rows.part.begin && label < rows.part.end;
        right[index(device)].push_back(own ? *(x + label - rows.part.begin) : 0.0);
      }
    }
    log_sums_[one.op].assign(logits.size(), {});
    for (int device = 0; device < s_.mesh.size(); ++device) {
      const LocalOperator part = local(one.op, device);
      const Numbers sum = reduced(sums, device, part.inner_axes, false);
      const Numbers logit = reduced(right, device, part.inner_axes, false);
      const std::int64_t samples = part.boxes[0][0].size();
      const std::int64_t positions = static_cast<std::int64_t>(sum.size()) / samples;
      Numbers loss(index(samples)), correct(index(samples));
      for (std::size_t i = 0; i < sum.size(); ++i) {
        const double log_sum = shift[index(device)][i] + std::log(sum[i]);
        log_sums_[one.op][index(device)].push_back(log_sum);
        loss[i / index(positions)] += (log_sum - logit[i]) / static_cast<double>(positions);
        correct[i / index(positions)] +=
            (logit[i] == shift[index(device)][i] ? 1.0 : 0.0) / static_cast<double>(positions);
      }
      values_[index(one.values[2])][index(device)] = loss;
      values_[index(one.values[3])][index(device)] = correct;
    }
  }

  void split_classes_back(const Instruction& one) {
    const auto forward = std::find_if(s_.cut.forward.begin(), s_.cut.forward.end(), [&](const Instruction& other) {
      return other.kind == Instruction::Kind::compute && other.op == one.op;
    });
    for (int device = 0; device < s_.mesh.size(); ++device) {
      const LocalOperator part = local(one.op, device);
      const Rows rows = rows_of(part);
      const Numbers& logits = values_[index(forward->values[0])][index(device)];
      const Numbers& labels = values_[index(forward->values[1])][index(device)];
      const Numbers& dy = values_[index(one.values[2])][index(device)];
      const std::int64_t positions = rows.positions / part.boxes[0][0].size();
      Numbers dx(logits.size());
      for (std::int64_t i = 0; i < rows.positions; ++i) {
        const double weight = dy[index(i / positions)] / static_cast<double>(positions);
        for (std::int64_t k = 0; k < rows.classes; ++k) {
          const bool right = rows.part.begin + k == static_cast<std::int64_t>(labels[index(i)]);
          const double share =
              std::exp(logits[index(i * rows.classes + k)] - log_sums_[one.op][index(device)][index(i)]);
          dx[index(i * rows.classes + k)] = weight * (share - (right ? 1.0 : 0.0));
        }
      }
      values_[index(one.values[0])][index(device)] = dx;
    }
  }

  const Sharding& s_;
  std::vector<Parts> values_;
  std::map<std::pair<OpId, int>, std::unique_ptr<LocalRun>> runs_;
  std::map<OpId, Parts> log_sums_;
};

}  // namespace

std::map<TensorId, Numbers> sources(const Graph& graph, std::int64_t rows) {
  std::map<TensorId, Numbers> all;
  for (TensorId id = 0; id < static_cast<TensorId>(graph.tensors().size()); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.producer >= 0) continue;
    const std::int64_t count = tensor.shape.elements_per_sample() * (tensor.shape.batched ? rows : 1);
    const std::int64_t bound = tensor.role == Role::label ? label_classes(graph) : index_bound(graph, id);
    const Random random(5, static_cast<std::uint64_t>(id), 0, 0);  // not by name: names change nothing
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      if (tensor.shape.element == ElementType::index) {
        all[id].push_back(static_cast<double>(random.below(static_cast<std::uint64_t>(bound), at)));
      } else {
        const double number = 2 * random.uniform(at) - 1;
        all[id].push_back(tensor.role == Role::buffer ? std::abs(number) + 0.1 : number);
      }
    }
  }
  return all;
}

Numbers seed_gradient(std::int64_t rows) {
  Numbers seed;
  for (std::int64_t i = 0; i < rows; ++i) seed.push_back(1.0 / static_cast<double>(rows + i));
  return seed;
}

Results run_sharded(const Sharding& sharding, const std::map<TensorId, Numbers>& given) {
  return Interpreter(sharding, given).run();
}

Results run_whole(const Graph& graph, std::int64_t rows, const std::map<TensorId, Numbers>& given) {
  const OpTable ops(graph);
  const TensorTable tensors(graph, ops, rows);
  const Mesh mesh({{"one", 1}});
  const cluster::Cluster one("one", cluster::Kind::described, {{}}, {0}, {{}}, {});
  Decision decision;
  Placement whole{};
  whole[0] = kReplicated;
  decision.placements.assign(graph.tensors().size(), whole);
  decision.origins.resize(graph.tensors().size());
  decision.uses.resize(index(graph.size()));
  const ShardedGraph cut = expand(graph, ops, tensors, mesh, MeshLinks(mesh, one), decision);
  return run_sharded({graph, ops, tensors, mesh, cut, false}, given);
}

}  // namespace millrace::shard::testing
