// GPT-2 (Radford et al. 2019): pre-norm blocks of attention and MLP; 124,439,808 parameters at its smallest, tied.
#include <cmath>
#include <string>

#include "models/families.h"
#include "models/network.h"

namespace millrace::models {
namespace {

TensorId linear(Network& net, const std::string& name, TensorId x, std::int64_t out, double deviation) {
  const TensorId y = net.linear(name, x, out);
  net.initialize(name + ".weight", normal(deviation));
  net.initialize(name + ".bias", kZeros);
  return y;
}

TensorId block(Network& net, const std::string& name, TensorId x, const GptOptions& options) {
  net.layer(name);
  const std::string at = name + ".";
  // Projections onto the residual path start smaller, as there are two a block that add up.
  const double residual = kTransformerDeviation / std::sqrt(2.0 * static_cast<double>(options.layers));

  TensorId y = net.apply(at + "norm1", "layer_norm", x);
  y = linear(net, at + "attention.qkv", y, 3 * options.width, kTransformerDeviation);
  y = net.apply(at + "attention.core", "attention", y, {{"heads", options.heads}, {"causal", true}});
  y = linear(net, at + "attention.out", y, options.width, residual);
  y = net.dropout(at + "attention.dropout", y, options.dropout);
  x = net.add(at + "add1", x, y);

  y = net.apply(at + "norm2", "layer_norm", x);
  y = linear(net, at + "mlp.up", y, 4 * options.width, kTransformerDeviation);
  y = net.apply(at + "mlp.gelu", "gelu", y, {{"approximate", std::string("tanh")}});
  y = linear(net, at + "mlp.down", y, options.width, residual);
  y = net.dropout(at + "mlp.dropout", y, options.dropout);
  return net.add(at + "add2", x, y);
}

}  // namespace

Graph make_gpt(const GptOptions& options) {
  Network net("gpt");
  TensorId x = net.token_input(options.sequence);
  net.layer("embedding");
  x = net.apply("embedding.token", "embedding", x, {{"vocabulary", options.vocabulary}, {"width", options.width}});
  net.initialize("embedding.token.weight", normal(kTransformerDeviation));
  x = net.apply("embedding.position", "position_embedding", x);
  net.initialize("embedding.position.weight", normal(kTransformerDeviation));
  x = net.dropout("embedding.dropout", x, options.dropout);
  for (std::int64_t i = 0; i < options.layers; ++i) x = block(net, "blocks." + std::to_string(i), x, options);

  net.layer("head");
  x = net.apply("norm", "layer_norm", x);
  if (options.tied) return net.finish(net.tied_linear("head", x, net.tensor("embedding.token.weight")));
  x = net.linear("head", x, options.vocabulary, false);
  net.initialize("head.weight", normal(kTransformerDeviation));
  return net.finish(x);
}

}  // namespace millrace::models
