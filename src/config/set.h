// Changes a document before it is read, for `--set path.to.key=VALUE` and for the axes of a sweep.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/node.h"
#include "config/problems.h"

namespace millrace::config {

/// A place where a word may stand for a map: {"plan.partitioner", "name"} reads `partitioner: dp` as
/// `partitioner: {name: dp}`, in a list too. Without a key the word itself is one: {"cluster", ""} reads
/// `cluster: model` as `cluster: {model: {}}`.
struct ShortForm {
  std::string path;  ///< without list indices
  std::string key;
};

/// Puts `value` at `path` ("a.list[0].key"). Missing maps on the way are made, short forms on the way are written out;
/// what was there is replaced as a whole. What cannot be done is a problem at value.where.
void set_value(Node& root, std::string_view path, Node value, std::span<const ShortForm> short_forms,
               Problems& problems);

/// The same for "a.b.c=VALUE", VALUE in YAML. All problems with it, later ones too, cite `--set a.b.c=VALUE`.
/// Files that VALUE names are looked up as if the document named them.
/// \throws InvalidInput  when VALUE is not YAML.
void apply_set(Node& root, std::string_view assignment, std::span<const ShortForm> short_forms, Problems& problems);

}  // namespace millrace::config
