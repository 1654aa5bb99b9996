// The samples, as each kind's attributes and input shapes.
#include "tests/graph/samples.h"

namespace millrace::test {
namespace {

using List = std::vector<std::int64_t>;

TensorShape real(Dims dims) { return {.dims = std::move(dims)}; }
TensorShape index(Dims dims) { return {.dims = std::move(dims), .element = ElementType::index}; }

Attributes window(List kernel, List stride, List padding) {
  return {{"kernel", std::move(kernel)}, {"stride", std::move(stride)}, {"padding", std::move(padding)}};
}

Attributes conv(std::int64_t out, bool bias, Attributes attributes) {
  attributes.set("out_channels", out);
  attributes.set("bias", bias);
  return attributes;
}

Attributes depthwise(bool bias) {
  Attributes attributes = window({3, 2}, {2, 1}, {1, 0});
  attributes.set("bias", bias);
  return attributes;
}

}  // namespace

std::vector<Sample> samples() {
  return {
      {"linear", {{"out_features", 5}, {"bias", true}}, {real({4})}},
      {"linear", {{"out_features", 3}, {"bias", false}}, {real({2, 7, 3})}},
      {"conv2d", conv(6, true, window({3, 2}, {2, 1}, {1, 0})), {real({4, 9, 5})}},
      {"conv2d", conv(4, false, window({1, 1}, {1, 1}, {0, 0})), {real({4, 1, 1})}},
      {"depthwise_conv2d", depthwise(true), {real({4, 9, 5})}},
      {"depthwise_conv2d", depthwise(false), {real({1, 3, 3})}},
      {"conv_transpose2d", conv(6, true, window({2, 2}, {2, 2}, {0, 0})), {real({4, 3, 5})}},
      {"conv_transpose2d", conv(4, false, window({3, 2}, {2, 1}, {1, 0})), {real({4, 3, 5})}},
      {"batch_norm", {{"epsilon", 1e-5}, {"momentum", 0.1}}, {real({4, 3, 2})}},
      {"batch_norm", {{"epsilon", 1e-5}, {"momentum", 0.1}}, {real({4})}},
      {"layer_norm", {{"epsilon", 1e-5}}, {real({3, 8})}},
      {"layer_norm", {{"epsilon", 1e-5}}, {real({8})}},
      {"relu", {}, {real({2, 3, 4})}},
      {"relu", {}, {real({})}},
      {"tanh", {}, {real({5, 6})}},
      {"gelu", {{"approximate", std::string("tanh")}}, {real({5, 6})}},
      {"max_pool", window({3, 3}, {2, 2}, {1, 1}), {real({2, 7, 8})}},
      {"avg_pool", window({2, 2}, {2, 2}, {0, 0}), {real({2, 4, 6})}},
      {"global_average_pool", {}, {real({5, 4, 3})}},
      {"add", {}, {real({3, 4}), real({3, 4})}},
      {"multiply", {}, {real({7}), real({7})}},
      {"concat", {{"axis", 0}}, {real({2, 5}), real({3, 5}), real({2, 5})}},
      {"concat", {{"axis", 1}}, {real({2, 5, 2}), real({2, 1, 2})}},
      {"select", {{"axis", 0}, {"index", 0}}, {real({5, 6})}},
      {"select", {{"axis", 1}, {"index", 2}}, {real({5, 3, 3})}},
      {"select", {{"axis", 0}, {"index", 3}}, {real({4})}},
      {"reshape", {{"dims", List{3, -1}}}, {real({6, 4})}},
      {"reshape", {{"dims", List{4, 2, 1, 9}}}, {real({8, 1, 3, 3})}},
      {"reshape", {{"dims", List{3, 2}}}, {real({2, 3})}},
      {"flatten", {}, {real({6, 2, 2})}},
      {"flatten", {}, {real({6, 1, 1})}},
      {"flatten", {}, {real({1, 4})}},
      {"transpose", {{"permutation", List{2, 0, 1}}}, {real({2, 3, 4})}},
      {"batch_matmul", {{"transpose_b", false}}, {real({2, 3, 4}), real({2, 4, 5})}},
      {"batch_matmul", {{"transpose_b", true}}, {real({3, 4}), real({5, 4})}},
      {"softmax", {}, {real({2, 9})}},
      {"attention", {{"heads", 2}, {"causal", true}}, {real({5, 12})}},
      {"attention", {{"heads", 1}, {"causal", false}}, {real({5, 12})}},
      {"additive_attention", {}, {real({5, 4}), real({7, 4}), real({7, 6})}},
      {"lstm", {{"hidden", 6}, {"bidirectional", false}}, {real({5, 4})}},
      {"lstm", {{"hidden", 3}, {"bidirectional", true}}, {real({5, 4})}},
      {"embedding", {{"vocabulary", 11}, {"width", 6}}, {index({4})}},
      {"embedding", {{"vocabulary", 11}, {"width", 6}}, {index({})}},
      {"position_embedding", {}, {real({4, 6})}},
      {"segment_embedding", {{"segments", 2}}, {real({4, 6})}},
      {"dropout", {{"probability", 0.5}}, {real({4, 6})}},
      {"cross_entropy", {}, {real({4, 6}), index({4})}},
      {"cross_entropy", {}, {real({6}), index({})}},
      {"mean_squared_error", {}, {real({4, 6}), real({4, 6})}},
  };
}

OperandShapes operand_shapes(const Sample& sample) {
  const Inference inference = op_schema(sample.kind).infer(sample.attributes, sample.inputs);
  OperandShapes shapes{.inputs = sample.inputs, .outputs = inference.outputs, .parameters = {}};
  for (const OwnedTensor& parameter : inference.parameters) shapes.parameters.push_back(parameter.dims);
  return shapes;
}

}  // namespace millrace::test
