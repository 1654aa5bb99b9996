// BERT (arXiv 1810.04805): post-norm blocks named as gpt's. base: 109,482,240 parameters with the pooler and without
// a head. The first half of a sample is its first segment; the loss is over all positions (masked-LM) or samples.
#include <string>

#include "models/families.h"
#include "models/network.h"

namespace millrace::models {
namespace {

TensorId linear(Network& net, const std::string& name, TensorId x, std::int64_t out) {
  const TensorId y = net.linear(name, x, out);
  net.initialize(name + ".weight", normal(kTransformerDeviation));
  net.initialize(name + ".bias", kZeros);
  return y;
}

TensorId norm(Network& net, const std::string& name, TensorId x) {
  return net.apply(name, "layer_norm", x, {{"epsilon", 1e-12}});
}

TensorId embedding(Network& net, TensorId x, const BertOptions& options) {
  net.layer("embedding");
  x = net.apply("embedding.token", "embedding", x, {{"vocabulary", options.vocabulary}, {"width", options.width}});
  x = net.apply("embedding.position", "position_embedding", x);
  x = net.apply("embedding.segment", "segment_embedding", x);
  for (const char* table : {"token", "position", "segment"}) {
    net.initialize(std::string("embedding.") + table + ".weight", normal(kTransformerDeviation));
  }
  return net.dropout("embedding.dropout", norm(net, "embedding.norm", x), options.dropout);
}

TensorId block(Network& net, const std::string& name, TensorId x, const BertOptions& options) {
  net.layer(name);
  const std::string at = name + ".";
  TensorId y = linear(net, at + "attention.qkv", x, 3 * options.width);
  y = net.apply(at + "attention.core", "attention", y, {{"heads", options.heads}, {"causal", false}});
  y = linear(net, at + "attention.out", y, options.width);
  y = net.dropout(at + "attention.dropout", y, options.dropout);
  x = norm(net, at + "norm1", net.add(at + "add1", x, y));

  y = linear(net, at + "mlp.up", x, 4 * options.width);
  y = net.apply(at + "mlp.gelu", "gelu", y);
  y = linear(net, at + "mlp.down", y, options.width);
  y = net.dropout(at + "mlp.dropout", y, options.dropout);
  return norm(net, at + "norm2", net.add(at + "add2", x, y));
}

TensorId masked_lm(Network& net, TensorId x, const BertOptions& options) {
  net.layer("head");
  x = linear(net, "head.transform", x, options.width);
  x = net.apply("head.gelu", "gelu", x);
  x = norm(net, "head.norm", x);
  if (!options.tied) return linear(net, "head", x, options.vocabulary);
  x = net.tied_linear("head", x, net.tensor("embedding.token.weight"), true);
  net.initialize("head.bias", kZeros);
  return x;
}

TensorId classifier(Network& net, TensorId x, const BertOptions& options) {
  net.layer("classifier");
  x = net.apply("pooler.first", "select", x, {{"axis", 0}, {"index", 0}});
  x = linear(net, "pooler", x, options.width);
  x = net.apply("pooler.tanh", "tanh", x);
  x = net.dropout("dropout", x, options.dropout);
  return linear(net, "classifier", x, options.classes);
}

}  // namespace

Graph make_bert(const std::string& name, const BertOptions& options) {
  Network net(name);
  TensorId x = embedding(net, net.token_input(options.sequence), options);
  for (std::int64_t i = 0; i < options.layers; ++i) x = block(net, "blocks." + std::to_string(i), x, options);
  return net.finish(options.classification ? classifier(net, x, options) : masked_lm(net, x, options));
}

}  // namespace millrace::models
