// Rows of the registry: networks on sequences of tokens.
#include "models/entries.h"
#include "models/families.h"

namespace millrace::models {
namespace {

using config::Boolean;
using config::OneOf;
using config::Values;

Entry gpt() {
  return {"gpt",
          "decoder-only transformer as GPT-2",
          {positive("layers", "number of blocks", "12", 1, 100'000),
           positive("width", "features of a position", "768"),
           positive("heads", "attention heads; a divisor of the width", "12"),
           positive("sequence", "tokens of a sample", "1024"),
           positive("vocabulary", "number of tokens that there are", "50257"),
           {"tied", "the head shares the weight of the token embedding", Boolean{}, "true"},
           dropout_option("after the embedding and each projection onto the residual path")},
          [](const Values& v) {
            return make_gpt({.layers = v.integer("layers"),
                             .width = v.integer("width"),
                             .heads = v.integer("heads"),
                             .sequence = v.integer("sequence"),
                             .vocabulary = v.integer("vocabulary"),
                             .tied = v.boolean("tied"),
                             .dropout = v.real("dropout")});
          }};
}

Entry bert(const std::string& name, const std::string& text, std::string layers, std::string width, std::string heads) {
  return {name,
          text,
          {positive("layers", "number of blocks", std::move(layers), 1, 100'000),
           positive("width", "features of a position", std::move(width)),
           positive("heads", "attention heads; a divisor of the width", std::move(heads)),
           positive("sequence", "tokens of a sample", "512"),
           positive("vocabulary", "number of tokens that there are", "30522"),
           {"head", "masked_lm: a token for each position; classification: a class for each sample",
            OneOf{{"masked_lm", "classification"}}, "masked_lm"},
           {"tied", "the masked_lm head shares the weight of the token embedding", Boolean{}, "true"},
           positive("classes", "classes of the classification head", "2"),
           dropout_option("after the embedding and each projection onto the residual path")},
          [name](const Values& v) {
            return make_bert(name, {.layers = v.integer("layers"),
                                    .width = v.integer("width"),
                                    .heads = v.integer("heads"),
                                    .sequence = v.integer("sequence"),
                                    .vocabulary = v.integer("vocabulary"),
                                    .tied = v.boolean("tied"),
                                    .classification = v.text("head") == "classification",
                                    .classes = v.integer("classes"),
                                    .dropout = v.real("dropout")});
          }};
}

Entry gnmt(const std::string& name, std::string layers) {
  return {name,
          "translation with LSTM layers and attention; planned, not trained",
          {positive("layers", "LSTM layers, half of them the encoder's; even", std::move(layers), 4, 10'000),
           positive("width", "units of a layer", "1024"),
           positive("sequence", "tokens of a source and of a target", "50"),
           positive("vocabulary", "number of tokens that there are", "32320"),
           {"tied", "source and target share the token embedding", Boolean{}, "true"},
           dropout_option("before each LSTM layer")},
          [name](const Values& v) {
            return make_gnmt(name, {.layers = v.integer("layers"),
                                    .width = v.integer("width"),
                                    .sequence = v.integer("sequence"),
                                    .vocabulary = v.integer("vocabulary"),
                                    .tied = v.boolean("tied"),
                                    .dropout = v.real("dropout")});
          }};
}

}  // namespace

std::vector<Entry> sequence_entries() {
  return {gpt(), bert("bert", "encoder-only transformer, by default BERT base", "12", "768", "12"),
          bert("bert_large", "encoder-only transformer, by default BERT large", "24", "1024", "16"), gnmt("gnmt", "8"),
          gnmt("gnmt16", "16")};
}

}  // namespace millrace::models
