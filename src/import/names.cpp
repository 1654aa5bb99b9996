// Makes names valid and different.
#include "import/names.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

namespace millrace::import {
namespace {

std::string valid(std::string name) {
  for (char& c : name) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '*' || c == '?' || c == '\x7f') c = '_';
  }
  return name;
}

}  // namespace

std::vector<std::string> operator_names(const std::vector<NodeName>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  std::unordered_map<std::string, int> count;
  for (const NodeName& node : nodes) {
    names.push_back(valid(node.name.empty() ? std::string("node").append(node.id) : node.name));
    ++count[names.back()];
  }
  std::unordered_set<std::string> taken;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (count[names[i]] > 1) names[i].append(".").append(valid(nodes[i].id));
    while (!taken.insert(names[i]).second) names[i] += '_';
  }
  return names;
}

bool is_valid_name(const std::string& name) { return !name.empty() && valid(name) == name; }

std::string graph_name(const std::string& file) {
  const std::string stem = valid(std::filesystem::path(file).stem().string());
  return stem.empty() ? "graph" : stem;
}

}  // namespace millrace::import
