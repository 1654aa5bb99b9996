// The forward makes the logits of a chunk, and the loss of its positions; the backward makes them again, turns them
// into their gradients where they lie, and adds up what these give for the input and the parameters.
#include "kernels/onednn/logits_loss.h"

#include <algorithm>

#include "kernels/onednn/cross_entropy_rows.h"
#include "kernels/onednn/matrix_product.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"

namespace millrace::kernels::onednn {
namespace {

// Each chunk reads the weights once, and adds to their gradients: few and large ones take less time.
constexpr std::int64_t kLogitsBytes = std::int64_t{64} << 20;
constexpr std::int64_t kFewestPositions = 16;

std::int64_t positions_at_once(std::int64_t classes) {
  const std::int64_t fitting = kLogitsBytes / (classes * kFloatBytes);
  return std::max(kFewestPositions, fitting / kFewestPositions * kFewestPositions);
}

class LogitsLoss : public OpKernel {
 public:
  LogitsLoss(const Site& site, const Operator& loss)
      : threads_(site.threads),
        width_(site.input_dims().back()),
        bias_(site.op.attributes.boolean("bias")),
        shape_{&loss, site.rows, element_count(site.output_dims()) / site.output_dims().back(),
               site.output_dims().back()},
        at_once_(positions_at_once(shape_.classes)) {}

  /// The logits of a chunk, and the results of each position.
  std::int64_t scratch_bytes() const override {
    return logits_bytes() + aligned(shape_.all_positions() * static_cast<std::int64_t>(sizeof(PositionResult)));
  }

  void forward(const OpCall& call) override {
    auto* const results = reinterpret_cast<PositionResult*>(static_cast<std::byte*>(call.scratch) + logits_bytes());
    check_labels(shape_, indices(call, 1));
    each_chunk([&](std::int64_t first, std::int64_t count) {
      float* const logits = make_logits(call, first, count);
      each_position(count, [&](std::int64_t i, int) {
        float* const x = logits + i * shape_.classes;
        results[first + i] = position_result(x, indices(call, 1)[first + i], x, shape_.classes);
      });
    });
    mean_results(shape_, results, output(call, 0), output(call, 1));
  }

  bool can_overwrite() const override { return true; }
  void backward_input(const OpCall& call) override {
    each_chunk([&](std::int64_t first, std::int64_t count) {
      float* const logits = make_logits(call, first, count);
      each_position(count, [&](std::int64_t i, int) {
        const std::int64_t position = first + i;
        const float weight = output_gradient(call)[position / shape_.positions] / static_cast<float>(shape_.positions);
        float* const x = logits + i * shape_.classes;
        position_gradient(x, indices(call, 1)[position], weight, x, shape_.classes);
      });
      add_gradients(call, first, count, logits);
    });
  }

 private:
  std::int64_t logits_bytes() const {
    return aligned(std::min(at_once_, shape_.all_positions()) * shape_.classes * kFloatBytes);
  }

  template <class F>
  void each_chunk(F&& f) const {
    for (std::int64_t first = 0; first < shape_.all_positions(); first += at_once_) {
      f(first, std::min(at_once_, shape_.all_positions() - first));
    }
  }
  template <class F>
  void each_position(std::int64_t count, F&& f) const {
    parallel_tasks(threads_, count, count * shape_.classes, f);
  }

  LinearShape rows_of(std::int64_t count) const { return {count, width_, shape_.classes, bias_}; }

  float* make_logits(const OpCall& call, std::int64_t first, std::int64_t count) const {
    float* const logits = scratch(call);
    const std::int64_t classes = shape_.classes;
    if (bias_) {
      each_position(count,
                    [&](std::int64_t i, int) { std::copy_n(parameter(call, 1), classes, logits + i * classes); });
    }
    gemm(linear_product(Pass::forward, rows_of(count)), input(call) + first * width_, parameter(call, 0), logits);
    return logits;
  }

  void add_gradients(const OpCall& call, std::int64_t first, std::int64_t count, const float* logits) const {
    if (float* const dx = input_gradient(call)) {
      gemm(linear_product(Pass::backward_data, rows_of(count)), logits, parameter(call, 0), dx + first * width_);
    }
    const bool overwrite = call.overwrite && first == 0;
    const Gemm product = linear_product(Pass::backward_weights, rows_of(count));
    gemm(overwrite ? overwriting(product) : product, logits, input(call) + first * width_, parameter_gradient(call, 0));
    if (bias_ && overwrite) std::fill_n(parameter_gradient(call, 1), shape_.classes, 0.0F);
    if (bias_) add_column_sums(threads_, logits, count, shape_.classes, parameter_gradient(call, 1));
  }

  int threads_;
  std::int64_t width_;
  bool bias_;
  CrossEntropyShape shape_;
  std::int64_t at_once_;
};

template <class Id>
bool among(const std::vector<Id>& ascending, Id id) {
  return std::binary_search(ascending.begin(), ascending.end(), id);
}

}  // namespace

OpId layer_of_fused_loss(const StageGraph& stage, const CompileOptions& options) {
  constexpr OpId kNone = -1;
  const Graph& graph = *stage.graph;
  if (options.plain || options.split_backward || options.source != nullptr) return kNone;
  if (!among(stage.ops, graph.loss()) || graph.op(graph.loss()).schema->name != "cross_entropy") return kNone;
  const Operator& loss = graph.op(graph.loss());
  const TensorId logits = loss.inputs[0];
  const OpId layer = graph.tensor(logits).producer;
  if (!among(stage.ops, layer) || graph.op(layer).schema->name != "linear") return kNone;
  if (graph.consumers(logits).size() != 1 || !among(stage.inputs, loss.inputs[1])) return kNone;
  if (options.training && !among(options.recompute, layer)) return kNone;
  const TensorShape& shape = graph.tensor(logits).shape;
  const std::int64_t classes = shape.dims.back();
  const bool worth_it = options.rows * shape.elements_per_sample() > positions_at_once(classes) * classes;
  return worth_it ? layer : kNone;
}

std::unique_ptr<OpKernel> make_logits_loss(const Site& site, const Operator& loss) {
  return std::make_unique<LogitsLoss>(site, loss);
}

}  // namespace millrace::kernels::onednn
