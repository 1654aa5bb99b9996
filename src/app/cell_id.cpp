// The identity of a sweep's cell: what it computes, whatever it is called and wherever it is written.
#include <nlohmann/json.hpp>

#include "app/sweep_cells.h"
#include "base/hash.h"
#include "config/document.h"
#include "config/number.h"

namespace millrace::app {
namespace {

using nlohmann::json;

json value_of(const config::Node& scalar) {
  if (scalar.quoted) return scalar.text;
  if (scalar.text == "true") return true;
  if (scalar.text == "false") return false;
  const auto integer = config::parse_integer(scalar.text);
  if (integer.fault == config::NumberFault::none) return integer.value;
  const auto real = config::parse_real(scalar.text);
  if (real.fault == config::NumberFault::none) return real.value;
  return scalar.text;
}

json json_of(const config::Node& node) {
  if (node.is_null()) return nullptr;
  if (node.is_scalar()) return value_of(node);
  json all = node.is_map() ? json::object() : json::array();
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    if (node.is_map()) {
      all[node.keys[i].text] = json_of(node.items[i]);
    } else {
      all.push_back(json_of(node.items[i]));
    }
  }
  return all;
}

}  // namespace

std::string cell_id(const std::string& effective, int repetition, std::optional<int> ranks) {
  config::Problems problems;
  json identity = json_of(config::load_text(effective, nullptr, problems));
  problems.throw_if_any();
  identity.erase("name");
  identity.erase("output");
  identity["repetition"] = repetition;
  if (ranks) identity["ranks"] = *ranks;
  constexpr std::size_t kDigits = 12;
  return digest(identity.dump()).substr(0, kDigits);  // keys are sorted: the library keeps them in a map
}

}  // namespace millrace::app
