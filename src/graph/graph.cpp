// Look-ups, counts and the digest of a graph.
#include "graph/graph.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/hash.h"
#include "graph/footprint.h"

namespace millrace {
namespace {

// Names hold no control characters (GraphBuilder refuses them), so lines and tabs keep neighbouring fields apart. The
// text of a graph with a million operators is not held whole.
class DigestText {
 public:
  void field(std::string_view text) {
    text_ += text;
    text_ += '\t';
  }
  void field(double number) {
    fmt::format_to(std::back_inserter(text_), "{}", number);
    text_ += '\t';
  }
  void field(std::int64_t number) { field(std::string_view(fmt::format_int(number).c_str())); }
  void ids(std::string_view label, const std::vector<std::int32_t>& list) {
    field(label);
    for (const std::int32_t id : list) field(std::int64_t{id});
  }
  void end_line() {
    text_ += '\n';
    if (text_.size() >= kPiece) pass_on();
  }
  std::string digest() {
    pass_on();
    return stream_.digest();
  }

 private:
  static constexpr std::size_t kPiece = 1 << 16;

  void pass_on() {
    stream_.add(text_);
    text_.clear();
  }

  std::string text_;
  DigestStream stream_;
};

}  // namespace

std::span<const OpId> Graph::consumers(TensorId id) const {
  const auto first = static_cast<std::size_t>(consumer_start_[static_cast<std::size_t>(id)]);
  const auto last = static_cast<std::size_t>(consumer_start_[static_cast<std::size_t>(id) + 1]);
  return std::span<const OpId>(consumers_).subspan(first, last - first);
}

OpId Graph::find_op(std::string_view name) const {
  return op_names_.find(name, [this](OpId id) -> std::string_view { return op(id).name; });
}

TensorId Graph::find_tensor(std::string_view name) const {
  return tensor_names_.find(name, [this](TensorId id) -> std::string_view { return tensor(id).name; });
}

std::int64_t Graph::parameter_count() const {
  std::int64_t count = 0;
  for (const TensorId id : parameters_) count += parameter_elements(tensor(id));
  return count;
}

bool Graph::trainable() const {
  return std::all_of(operators_.begin(), operators_.end(), [](const Operator& op) { return op.schema->has_kernels; });
}

std::string Graph::make_digest() const {
  DigestText text;
  text.field(name_);
  text.end_line();
  for (const Tensor& tensor : tensors_) {
    text.field(tensor.name);
    text.field(static_cast<std::int64_t>(tensor.role));
    text.field(static_cast<std::int64_t>(tensor.shape.element));
    for (const std::int64_t extent : tensor.shape.dims) text.field(extent);
    text.end_line();
  }
  for (const Operator& op : operators_) {
    text.field(op.name);
    text.field(op.schema->name);
    for (const auto& [name, value] : op.attributes.all()) {
      text.field(name);
      text.field(type_name(value));
      text.field(format(value));
    }
    if (op.schema->explicit_figures) {
      const OpFigures& figures = figures_[static_cast<std::size_t>(&op - operators_.data())];
      for (const double seconds : {figures.forward_s, figures.backward_input_s, figures.backward_weight_s}) {
        text.field(seconds);
      }
      text.field(figures.saved_bytes);  // the other bytes are dimensions of its tensors
    }
    text.ids("inputs", op.inputs);
    text.ids("parameters", op.parameters);
    text.ids("buffers", op.buffers);
    text.ids("outputs", op.outputs);
    text.end_line();
  }
  return text.digest();
}

OperandShapes Graph::shapes(OpId id) const {
  const Operator& node = op(id);
  OperandShapes shapes;
  shapes.inputs.reserve(node.inputs.size());
  shapes.outputs.reserve(node.outputs.size());
  shapes.parameters.reserve(node.parameters.size());
  for (const TensorId input : node.inputs) {
    const TensorShape& shape = tensor(input).shape;
    shapes.inputs.push_back(node.schema->explicit_figures ? shape : as_reals(shape));
  }
  for (const TensorId output : node.outputs) shapes.outputs.push_back(tensor(output).shape);
  for (const TensorId parameter : node.parameters) shapes.parameters.push_back(tensor(parameter).shape.dims);
  return shapes;
}

}  // namespace millrace
