// Turns the operators of a graph file into a graph, one node after the other, noting every fault with its place.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "config/node.h"
#include "config/problems.h"
#include "config/reader.h"
#include "graph/graph_builder.h"

namespace millrace::import {

class GraphAssembler {
 public:
  /// \param micro_batch  samples that the figures of cost operators are for.
  GraphAssembler(std::string name, std::int64_t micro_batch, config::Problems& problems);

  /// An element of `inputs` or `labels`. Becomes a tensor of the graph where an operator first reads it.
  void add_data(const config::Field& field, Role role);
  /// The next element of `operators`.
  /// \throws InvalidInput  the problems so far, once there are very many.
  void add_operator(const config::Node& node);

  std::size_t operators() const { return index_; }  ///< that were given

  /// Tells what reads something that there is not.
  /// \throws InvalidInput  with all problems, unless there is none.
  void check();
  /// \pre check() has passed.
  std::vector<std::string> operator_names() const;
  void carry(Carried carried) { builder_.carry(std::move(carried)); }

  /// \pre check() has passed. \throws InvalidInput  what was found since.
  Graph finish();

 private:
  class Op;  // an element of `operators` under reading
  struct Data {
    std::string name;
    TensorShape shape;
    Role role;
    config::Field field;
  };
  struct Unresolved {
    config::Where where;
    std::string path;
    std::string name;
  };

  TensorId find(const std::string& name);
  TensorId add_tensor(const Data& data);
  bool add_cost(const Op& op, bool reads_known, std::vector<TensorId> inputs);
  bool add_kind(const Op& op, const OpSchema& schema, bool reads_known, std::vector<TensorId> inputs);
  bool read_inputs(const Op& op, std::vector<TensorId>& inputs);
  void tell_unresolved();

  GraphBuilder builder_;
  std::int64_t micro_batch_;
  config::Problems& problems_;
  std::size_t index_ = 0;                    // of the operator
  std::vector<Data> data_;                   // that no operator has read yet
  std::size_t data_count_ = 0;               // first of names_
  std::vector<std::string> names_;           // of inputs, labels and operators that were added
  std::unordered_set<std::string> refused_;  // operators with problems: what reads them is not told again
  std::vector<Unresolved> unresolved_;
};

}  // namespace millrace::import
