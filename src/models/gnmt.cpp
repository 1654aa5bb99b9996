// GNMT (arXiv 1609.08144) with the names of NVIDIA's PyTorch version: the first encoder layer reads both ways, layers
// from the third on are residual, and every decoder layer reads what attention took from the encoder.
#include <fmt/format.h>

#include <string>

#include "base/errors.h"
#include "models/families.h"
#include "models/network.h"

namespace millrace::models {
namespace {

struct Builder {
  Network& net;
  const GnmtOptions& options;

  TensorId lstm(const std::string& name, TensorId x, bool bidirectional = false) const {
    return net.apply(name, "lstm", x, {{"hidden", options.width}, {"bidirectional", bidirectional}});
  }
  TensorId dropout(const std::string& name, TensorId x) const {
    return net.dropout(name + ".dropout", x, options.dropout);
  }

  TensorId embed(const std::string& name, TensorId tokens, std::vector<TensorId> shared) const {
    net.layer(name);
    return net.apply(name, "embedding", {tokens}, {{"vocabulary", options.vocabulary}, {"width", options.width}},
                     std::move(shared));
  }

  TensorId encoder(TensorId tokens) const {
    TensorId x = embed("encoder.embedder", tokens, {});
    for (std::int64_t i = 0; i < options.layers / 2; ++i) {
      const std::string name = "encoder.rnn_layers." + std::to_string(i);
      net.layer(name);
      const TensorId y = lstm(name, dropout(name, x), i == 0);
      x = i < 2 ? y : net.add(name + ".add", y, x);
    }
    return x;
  }

  /// What each target position takes from the encoder (Bahdanau et al., arXiv 1409.0473), normalised.
  TensorId attention(TensorId queries, TensorId encoded) const {
    const std::string at = "decoder.att_rnn.attn";
    const TensorId q = net.linear(at + ".linear_q", queries, options.width, false);
    const TensorId k = net.linear(at + ".linear_k", encoded, options.width, false);
    return net.apply(at, "additive_attention", {q, k, encoded});
  }

  TensorId decoder(TensorId tokens, TensorId encoded) const {
    std::vector<TensorId> shared;
    if (options.tied) shared.push_back(net.tensor("encoder.embedder.weight"));
    TensorId x = embed("decoder.embedder", tokens, std::move(shared));
    net.layer("decoder.att_rnn");
    x = lstm("decoder.att_rnn.rnn", dropout("decoder.att_rnn", x));
    const TensorId context = attention(x, encoded);
    for (std::int64_t i = 0; i + 1 < options.layers / 2; ++i) {
      const std::string name = "decoder.rnn_layers." + std::to_string(i);
      net.layer(name);
      const TensorId joined = net.apply(name + ".concat", "concat", {x, context}, {{"axis", 1}});
      const TensorId y = lstm(name, dropout(name, joined));
      x = i == 0 ? y : net.add(name + ".add", y, x);
    }
    return x;
  }
};

}  // namespace

Graph make_gnmt(const std::string& name, const GnmtOptions& options) {
  if (options.layers % 2 != 0) {
    throw InvalidInput(
        fmt::format("option 'layers' of model {}: found {}, allowed: an even number, half of which the "
                    "encoder has",
                    name, options.layers));
  }
  Network net(name);
  const Builder builder{net, options};
  const TensorId source = net.token_input(options.sequence);
  const TensorId target = net.token_input(options.sequence, "target");
  const TensorId x = builder.decoder(target, builder.encoder(source));
  net.layer("decoder.classifier");
  return net.finish(net.linear("decoder.classifier", x, options.vocabulary));
}

}  // namespace millrace::models
