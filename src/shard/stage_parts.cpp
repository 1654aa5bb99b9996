// Walks the operators of a stage once for each device; what has to change hands stands before its first reader.
#include "shard/stage_parts.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "base/errors.h"
#include "graph/graph_builder.h"
#include "shard/costs.h"
#include "shard/exchange_kind.h"
#include "shard/index.h"
#include "shard/local_operator.h"

namespace millrace::shard {
namespace {

class StageCut {
 public:
  StageCut(const Graph& graph, std::span<const OpId> stage, const OpTable& ops, const TensorTable& tensors,
           const Mesh& mesh, const Decision& decision)
      : graph_(graph),
        whole_(make_stage_graph(graph, stage)),
        ops_(ops),
        tensors_(tensors),
        mesh_(mesh),
        decision_(decision) {}

  StageParts run() {
    find_parameters();
    for (int device = 0; device < mesh_.size(); ++device) build(device);
    return std::move(parts_);
  }

 private:
  /// A tensor as its readers take it: its property, and that of the gradient which they give.
  using Version = std::tuple<TensorId, Property, Property>;

  const Use& use(OpId op) const { return decision_.uses[index(op)].front(); }

  Holding holding(TensorId tensor, Property property) const {
    Holding result;
    if (property.is_partial()) result.kind = Holding::Kind::term;
    if (!property.is_split()) return result;
    const TensorView view = tensors_.view(tensor);
    const auto dim = index(property.dim);
    result.kind = Holding::Kind::part;
    result.dim = property.dim - (graph_.tensor(tensor).shape.batched ? 1 : 0);
    const std::int64_t unit = view.extents[dim] / view.units[dim];
    result.borders = cut_units(view.units[dim], mesh_.size(), mesh_.ratio(property.ratio));
    for (std::int64_t& border : result.borders) border *= unit;
    return result;
  }

  // Parameters are kept as their operators take them, so that they never change hands.
  void find_parameters() {
    std::map<TensorId, std::pair<Property, OpId>> taken;
    for (const OpId op : whole_.ops) {
      const auto operands = ops_.operands(op);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].side != Side::parameter && operands[i].side != Side::buffer) continue;
        Property property = ops_.property(op, i, use(op));
        if (property.is_partial()) property = kReplicated;  // one device adds it
        const auto [place, is_new] = taken.try_emplace(operands[i].tensor, property, op);
        if (!is_new && place->second.first != property) {
          throw InvalidInput(fmt::format(
              "parameter {} is {} in operator {} and {} in operator {}: annotate it so that both take the same part",
              graph_.tensor(operands[i].tensor).name, format(place->second.first, mesh_),
              graph_.op(place->second.second).name, format(property, mesh_), graph_.op(op).name));
        }
      }
    }
    for (const auto& [tensor, found] : taken) parts_.parameters[tensor] = holding(tensor, found.first);
  }

  void build(int device) {
    device_ = device;
    first_ = device == 0;
    builder_.emplace("part");
    versions_.clear();
    made_as_.clear();
    local_.clear();
    next_op_ = 0;
    StagePart part;
    for (const TensorId input : whole_.inputs) {
      const Tensor& tensor = graph_.tensor(input);
      local_[input] = tensor.role == Role::label ? builder_->label(tensor.name, tensor.shape)
                                                 : builder_->input(tensor.name, tensor.shape);
      made_as_[input] = kReplicated;
      part.stage.inputs.push_back(local_.at(input));
      const auto& wanted = whole_.gradient_inputs;
      if (std::binary_search(wanted.begin(), wanted.end(), input)) {
        part.stage.gradient_inputs.push_back(local_.at(input));
      }
    }
    before_ = whole_.ops.empty() ? -1 : whole_.ops.front();
    for (const OpId op : whole_.ops) add(op);
    // What leaves the stage leaves it whole.
    std::map<TensorId, TensorId> border;
    for (const TensorId output : whole_.outputs) {
      border[output] = version(output, kReplicated, kReplicated, static_cast<OpId>(graph_.size()));
    }
    part.graph = std::make_shared<const Graph>(builder_->build());
    part.stage.graph = part.graph.get();
    for (OpId op = 0; op < part.graph->size(); ++op) part.stage.ops.push_back(op);
    for (const TensorId tensor : whole_.outputs) part.stage.outputs.push_back(border.at(tensor));
    for (const TensorId tensor : whole_.gradient_outputs) part.stage.gradient_outputs.push_back(border.at(tensor));
    for (const OpId op : whole_.ops) {
      const Operator& of_part = part.graph->op(part.graph->find_op(graph_.op(op).name));
      note(graph_.op(op).parameters, of_part.parameters);
      note(graph_.op(op).buffers, of_part.buffers);
    }
    for (const TensorId tensor : whole_.parameters) part.stage.parameters.push_back(parts_.part_of.at(tensor));
    for (const TensorId tensor : whole_.buffers) part.stage.buffers.push_back(parts_.part_of.at(tensor));
    for (auto* list : {&part.stage.inputs, &part.stage.gradient_inputs, &part.stage.outputs,
                       &part.stage.gradient_outputs, &part.stage.parameters, &part.stage.buffers}) {
      std::sort(list->begin(), list->end());
    }
    if (first_) {
      for (const auto& [tensor, local] : border) parts_.part_of[tensor] = local;
      for (const TensorId input : whole_.inputs) parts_.part_of[input] = local_.at(input);
      note_gradients(*part.graph);
    }
    parts_.devices.push_back(std::move(part));
  }

  void note(const std::vector<TensorId>& whole, const std::vector<TensorId>& part) {
    for (std::size_t i = 0; i < whole.size(); ++i) parts_.part_of[whole[i]] = part[i];
  }

  // A buffer's statistics are whole wherever the buffer is.
  void note_gradients(const Graph& part) {
    for (const OpId op : whole_.ops) {
      const OpId local = part.find_op(graph_.op(op).name);
      const auto operands = ops_.operands(op);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const bool parameter = operands[i].side == Side::parameter;
        if (!parameter && operands[i].side != Side::buffer) continue;
        const Property property = ops_.property(op, i, use(op));
        const bool alike = parameter ? gradient_of(property, use(op)) == kReplicated : property == kReplicated;
        if (alike) parts_.repeated.emplace_back(parts_.part_of.at(operands[i].tensor), local);
      }
    }
  }

  void add(OpId op) {
    const Operator& node = graph_.op(op);
    const auto operands = ops_.operands(op);
    const LocalOperator local = local_operator(graph_, ops_, tensors_, mesh_, op, decision_.uses[index(op)], device_);
    OpSpec spec{.name = node.name, .kind = node.schema->name, .attributes = local.attributes, .layer = node.layer};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].side == Side::input) {
        const Property needed = ops_.property(op, i, use(op));
        spec.inputs.push_back(version(operands[i].tensor, needed, gradient_of(needed, use(op)), op));
      } else if (operands[i].side == Side::parameter) {
        const auto found = local_.find(operands[i].tensor);
        spec.shared_parameters.push_back(found == local_.end() ? -1 : found->second);
      }
    }
    note_share(op, local);
    const TensorId output = builder_->add(spec);
    const OpId number = next_op_++;
    if (first_) {
      parts_.whole_op.push_back(op);
      note_split(op, number, local);
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      local_[node.outputs[k]] = output + static_cast<TensorId>(k);
      made_as_[node.outputs[k]] = ops_.property(op, operands.size() - node.outputs.size() + k, use(op));
    }
    // A new parameter is numbered before the buffers and outputs.
    std::vector<TensorId> fresh;
    for (const TensorId parameter : node.parameters) {
      if (!local_.contains(parameter)) fresh.push_back(parameter);
    }
    const TensorId first = output - static_cast<TensorId>(node.buffers.size() + fresh.size());
    for (std::size_t k = 0; k < fresh.size(); ++k) local_[fresh[k]] = first + static_cast<TensorId>(k);
    before_ = op;
  }

  void note_share(OpId op, const LocalOperator& local) {
    if (use(op).kind != Use::Kind::letter) return;
    const auto operands = ops_.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const int dim = operands[i].dim_of(use(op).letter);
      if (dim < 0) continue;
      const std::int64_t extent = tensors_.view(operands[i].tensor).extents[index(dim)];
      parts_.shares[op].push_back(static_cast<double>(local.boxes[i][index(dim)].size()) / static_cast<double>(extent));
      return;
    }
  }

  void note_split(OpId op, OpId number, const LocalOperator& local) {
    const Operator& node = graph_.op(op);
    const auto operands = ops_.operands(op);
    const auto record = [&](SplitOperator::Kind kind, std::size_t operand) {
      const TensorId tensor = operands[operand].tensor;
      parts_.split.push_back(
          {number, op, kind, graph_.tensor(tensor).shape.dims, holding(tensor, ops_.property(op, operand, use(op)))});
    };
    for (std::size_t i = 0, parameter = 0; i < operands.size(); ++i) {
      if (operands[i].side != Side::parameter) continue;
      if (ops_.property(op, i, use(op)).is_partial()) parts_.terms.emplace_back(number, parameter);
      ++parameter;
    }
    if (node.schema->name == "dropout" && use(op).kind == Use::Kind::letter) {
      record(SplitOperator::Kind::mask, 0);
    } else if (local.inner_axes != 0) {
      record(SplitOperator::Kind::classes, 0);
    } else if (local.indices) {
      record(SplitOperator::Kind::table, 1);
    }
  }

  // The tensor as `reader` takes it: as it is made, as it is kept, or behind an exchange from that.
  TensorId version(TensorId tensor, Property needed, Property gradient, OpId reader) {
    const Tensor& node = graph_.tensor(tensor);
    const Property made = made_as_.at(tensor);
    const Property kept = decision_.placements[index(tensor)].front();
    const bool has_gradient = node.role == Role::activation && node.shape.element == ElementType::real;
    if (!has_gradient) gradient = gradient_kept(needed);
    if (needed == made && gradient == gradient_kept(made)) return local_.at(tensor);
    if (made == kept) return exchanged(tensor, made, needed, gradient, local_.at(tensor), reader);
    const TensorId base = exchanged(tensor, made, kept, gradient_kept(kept), local_.at(tensor), reader);
    if (needed == kept && gradient == gradient_kept(kept)) return base;
    return exchanged(tensor, kept, needed, gradient, base, reader);
  }

  TensorId exchanged(TensorId tensor, Property from, Property to, Property gradient, TensorId source, OpId reader) {
    const auto [place, is_new] = versions_.try_emplace({tensor, to, gradient}, -1);
    if (!is_new) return place->second;
    const Tensor& node = graph_.tensor(tensor);
    PartExchange exchange{.op = next_op_, .reader = reader, .dims = node.shape.dims};
    exchange.behind = std::binary_search(whole_.ops.begin(), whole_.ops.end(), node.producer) ? node.producer : before_;
    const OpId exchange_layer = exchange.behind;  // what is dropped comes back with its maker
    exchange.element_bytes = tensors_.view(tensor).element_bytes;
    exchange.from = holding(tensor, from);
    exchange.to = holding(tensor, to);
    exchange.gradient_from = holding(tensor, gradient);
    exchange.gradient_to = holding(tensor, gradient_kept(from));
    exchange.has_gradient = node.role == Role::activation && node.shape.element == ElementType::real;
    Dims dims = node.shape.dims;
    if (to.is_split()) {
      const auto& borders = exchange.to.borders;
      dims[index(exchange.to.dim)] = borders[index(device_) + 1] - borders[index(device_)];
    }
    place->second = builder_->add({.name = fmt::format("{}~{}", node.name, next_op_),
                                   .kind = {},
                                   .inputs = {source},
                                   .attributes = {{"dims", dims}},
                                   .layer = graph_.op(exchange_layer).layer,
                                   .schema = &exchange_kind()});
    ++next_op_;
    if (first_) {
      parts_.whole_op.push_back(reader);
      parts_.exchanges.push_back(std::move(exchange));
    }
    return place->second;
  }

  const Graph& graph_;
  const StageGraph whole_;
  const OpTable& ops_;
  const TensorTable& tensors_;
  const Mesh& mesh_;
  const Decision& decision_;
  StageParts parts_;
  // Of the device that is built:
  int device_ = 0;
  bool first_ = true;
  OpId next_op_ = 0;
  OpId before_ = -1;
  std::optional<GraphBuilder> builder_;
  std::map<Version, TensorId> versions_;
  std::map<TensorId, Property> made_as_;
  std::map<TensorId, TensorId> local_;
};

}  // namespace

StageParts cut_stage(const Graph& graph, std::span<const OpId> stage, const OpTable& ops, const TensorTable& tensors,
                     const Mesh& mesh, const Decision& decision) {
  return StageCut(graph, stage, ops, tensors, mesh, decision).run();
}

}  // namespace millrace::shard
