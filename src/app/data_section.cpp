// `data: {source: digits.h5, batch: 128, tail: drop}`.
#include "app/sections.h"

namespace millrace::app {
namespace {

const std::vector<std::pair<std::string, dataset::Tail>>& tails() {
  static const std::vector<std::pair<std::string, dataset::Tail>> list{
      {"drop", dataset::Tail::drop}, {"pad", dataset::Tail::pad}, {"uneven", dataset::Tail::uneven}};
  return list;
}

config::OneOf tail_words() {
  config::OneOf words;
  for (const auto& [word, tail] : tails()) words.words.push_back(word);
  return words;
}

}  // namespace

DataSection read_data(const config::Field& field, bool model_has_batch) {
  if (!field && model_has_batch) return {};
  config::Reader reader(field);
  DataSection data;
  const config::Field source = reader.field("source");
  if (source && !source.is_word("synthetic")) data.file = source.input_file();
  data.batch = reader.required("batch", config::Integer{1});
  const std::string tail = reader.get("tail", tail_words(), "drop");
  for (const auto& [word, value] : tails()) {
    if (word == tail) data.tail = value;
  }
  return data;
}

config::Node write_data(const DataSection& data) {
  config::Node node = config::Node::map();
  node.add("source", config::Node::quote(data.file ? data.file->string() : "synthetic"));
  node.add("batch", config::Node::plain(std::to_string(data.batch)));
  for (const auto& [word, value] : tails()) {
    if (value == data.tail) node.add("tail", config::Node::quote(word));
  }
  return node;
}

}  // namespace millrace::app
