// Lists the work of each operator and times each kind of work once.
#include "kernels/onednn/floor.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "kernels/onednn/convolution_shape.h"
#include "kernels/onednn/convolution_variants.h"
#include "kernels/onednn/matrix_product.h"

namespace millrace::kernels::onednn {
namespace {

constexpr std::int64_t kQueries = 64;  // of a block of attention, which leaves out what a causal block does not see
constexpr Pass kPasses[] = {Pass::forward, Pass::backward_data, Pass::backward_weights};

class Floor {
 public:
  Floor(const Graph& graph, std::int64_t rows) : graph_(graph), rows_(rows) {}

  void add(const Operator& op) {
    const std::string_view kind = op.schema->name;
    if (kind == "conv2d") {
      convolution(op);
    } else if (kind == "linear") {
      linear(op);
    } else if (kind == "attention") {
      attention(op);
    } else if (kind == "batch_matmul") {
      batch_matmul(op);
    }
  }
  double seconds() const { return seconds_; }

 private:
  const Dims& dims(TensorId tensor) const { return graph_.tensor(tensor).shape.dims; }
  bool wants_gradient(TensorId tensor) const { return graph_.tensor(tensor).role == Role::activation; }

  void convolution(const Operator& op) {
    const ConvolutionShape shape = convolution_shape(graph_, op, rows_);
    for (const Pass pass : kPasses) {
      if (pass == Pass::backward_data && !wants_gradient(op.inputs[0])) continue;
      add(1, convolution_work(pass, shape), [&] { return least_convolution_seconds(engine_, pass, shape); });
    }
  }

  void linear(const Operator& op) {
    const std::int64_t inputs = dims(op.inputs[0]).back(), outputs = dims(op.outputs[0]).back();
    const LinearShape shape{rows_ * element_count(dims(op.inputs[0])) / inputs, inputs, outputs, false};
    for (const Pass pass : kPasses) {
      if (pass == Pass::backward_data && !wants_gradient(op.inputs[0])) continue;
      product(1, linear_product(pass, shape));
    }
  }

  /// Scores and their use, and the four products of their gradients.
  void attention(const Operator& op) {
    const std::int64_t length = dims(op.outputs[0])[0], heads = op.attributes.integer("heads");
    const std::int64_t depth = dims(op.outputs[0])[1] / heads, times = rows_ * heads;
    for (std::int64_t first = 0; first < length; first += kQueries) {
      const std::int64_t count = std::min(kQueries, length - first);
      const std::int64_t keys = op.attributes.boolean("causal") ? first + count : length;
      const Gemm scores{
          .transpose_b = true, .m = count, .n = keys, .k = depth, .lda = depth, .ldb = depth, .ldc = keys};
      const Gemm use{.m = count, .n = depth, .k = keys, .lda = keys, .ldb = depth, .ldc = depth};
      const Gemm sum{
          .transpose_a = true, .m = keys, .n = depth, .k = count, .lda = keys, .ldb = depth, .ldc = depth, .beta = 1};
      for (const Gemm& shape : {scores, use, sum}) product(2 * times, shape);
    }
  }

  void batch_matmul(const Operator& op) {
    const Dims& y = dims(op.outputs[0]);
    const std::int64_t m = y[y.size() - 2], n = y.back(), k = dims(op.inputs[0]).back();
    const std::int64_t times = rows_ * element_count(y) / (m * n);
    for (const Pass pass : kPasses) product(times, linear_product(pass, {m, k, n, false}));
  }

  void product(std::int64_t times, const Gemm& shape) {
    const std::string work =
        fmt::format("{}x{}x{} {} {} {}", shape.m, shape.n, shape.k, shape.transpose_a, shape.transpose_b, shape.beta);
    add(times, work, [&] { return least_product_seconds(engine_, shape); });
  }

  template <class Measure>
  void add(std::int64_t times, const std::string& work, Measure measure) {
    const auto known = known_.find(work);
    const double seconds = known != known_.end() ? known->second : known_.emplace(work, measure()).first->second;
    seconds_ += static_cast<double>(times) * seconds;
  }

  const Graph& graph_;
  std::int64_t rows_;
  Engine engine_;
  std::map<std::string, double> known_;
  double seconds_ = 0;
};

}  // namespace

double floor_seconds(const Graph& graph, std::int64_t rows) {
  Floor floor(graph, rows);
  for (const Operator& op : graph.operators()) floor.add(op);
  return floor.seconds();
}

}  // namespace millrace::kernels::onednn
