// Operator names from the names of other tools, which may be missing, equal, or hold what our names may not.
#pragma once

#include <string>
#include <vector>

namespace millrace::import {

/// What a file calls a node.
struct NodeName {
  std::string name;  ///< empty: it has none
  std::string id;    ///< told apart by it where names are equal
};

/// A valid operator name each, all different: the name where only one node has it, else "name.id"; "node<id>" without a
/// name. White space, '*', '?' and control characters become '_'.
std::vector<std::string> operator_names(const std::vector<NodeName>& nodes);

/// Not empty, without white space, '*', '?' and control characters.
bool is_valid_name(const std::string& name);

/// The name of a graph that was read from this file: its last part without ending, made valid.
std::string graph_name(const std::string& file);

}  // namespace millrace::import
