// `data: {source: digits.h5, batch: 128, tail: drop}`.
#include <fmt/format.h>

#include "app/sections.h"
#include "base/errors.h"
#include "config/input_file.h"

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

// A clone has no data set but a sample: whoever runs an example first is told how to get it.
std::filesystem::path find_data(const config::Field& source) {
  const std::string written = source.as(config::Text{});
  if (!source.is_scalar()) return {};
  try {
    const auto& from = source.where().source;
    return config::find_input(written, from ? from->folder : std::filesystem::path());
  } catch (const InvalidInput& error) {
    const bool quickstart = std::filesystem::path(written).filename() == "fashion-mnist.h5";
    source.refuse(fmt::format("{}; {}", error.what(),
                              quickstart ? "./quickstart.sh makes it, from the package of the data set"
                                         : "millrace data makes data files, from IDX, CIFAR-10 and text"));
    return {};
  }
}

}  // namespace

DataSection read_data(const config::Field& field, bool model_has_batch) {
  if (!field && model_has_batch) return {};
  config::Reader reader(field);
  DataSection data;
  const config::Field source = reader.field("source");
  if (source && !source.is_word("synthetic")) data.file = find_data(source);
  const config::Field batch = reader.field("batch");
  if (batch) {
    data.batch = batch.as(config::Integer{1});
  } else {
    batch.refuse("missing, allowed: integer, at least 1: the samples of an iteration, as in data: {batch: 128}");
  }
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
