// `slowdown:` – ranks that compute slower than plans believe, for experiments.
#include <charconv>
#include <variant>

#include "app/sections.h"
#include "config/emit.h"

namespace millrace::app {

std::map<int, double> read_slowdown(const config::Field& field) {
  std::map<int, double> slowdown;
  config::Reader reader(field);
  for (const auto& [rank, factor] : reader.entries()) {
    int number = -1;
    const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), number);
    const bool canonical = error == std::errc() && end == rank.data() + rank.size() && std::to_string(number) == rank;
    if (!canonical || number < 0) {
      factor.refuse("found '" + rank + "' as a key, allowed: the number of a rank");
      continue;
    }
    const auto value = factor.value(config::Real{});
    if (!value) continue;
    slowdown[number] = std::get<double>(*value);
    if (slowdown[number] <= 0) factor.expected("a number above 0; 1.5 makes the rank compute 1.5 times slower");
  }
  return slowdown;
}

config::Node write_slowdown(const std::map<int, double>& slowdown) {
  config::Node node = config::Node::map();
  for (const auto& [rank, factor] : slowdown) node.add(std::to_string(rank), config::to_node(config::Value(factor)));
  return node;
}

}  // namespace millrace::app
